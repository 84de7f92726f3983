"""Which secrets a worker takes, who is given them, and that nothing that leaves an activity holds one."""

import base64
from pathlib import Path
from typing import Any

import pytest

from longhaul.activities.attempt.secrets import SecretsSetupError, WorkerSecrets, given, secret
from longhaul.activities.context.tokens import TokenCounter
from longhaul.activities.context.tool_results import Returning
from longhaul.activities.masker import NO_SECRETS
from longhaul.activities.tool import Place, ToolCall, ToolError
from longhaul.activities.tools.bash import Bash
from longhaul.agent.permission.call_analysis import CallAnalysis
from longhaul.agent.values.conversation.messages import DataBlock, HintBlock, TextBlock, ThinkingBlock, ToolCallBlock
from longhaul.agent.values.spec.agent_spec import AgentSpec, with_secrets_named
from longhaul.agent.values.spec.agent_spec import Secrets as Allowed
from longhaul.stores.offload.offloaders import Offloaders
from tests.activities.context.test_returning import ask, returned, text_of
from tests.activities.tools.calls import place_at
from tests.stores.offload.samples import files_below

KEY = "open-sesame-4711"
SECRETS = WorkerSecrets({"GATE_KEY": KEY})


@pytest.fixture
def place(tmp_path: Path) -> Place:
    (tmp_path / "workspace").mkdir()
    return place_at(tmp_path.resolve() / "workspace")


async def bash(command: str, place: Place, *, masked: bool = True) -> str:
    """What the command prints, before it is recorded."""
    analysis = await Bash().examine({"command": command}, place)
    masker = SECRETS.masker if masked else NO_SECRETS
    call = ToolCall("c", {"command": command}, place, analysis, secrets=SECRETS.named(["GATE_KEY"]), masker=masker)
    output = (await Bash().run(call)).output
    assert isinstance(output, str)
    return output


@pytest.mark.proves("D9")
async def test_a_command_finds_the_secret_in_its_environment(place: Place) -> None:
    assert await bash('test "$GATE_KEY" = open-sesame-4711 && touch it && echo right', place) == "right"


async def test_a_command_that_runs_unasked_is_given_none(place: Place) -> None:
    assert (await Bash().examine({"command": "ls"}, place)).read_only
    analysis = (await Bash().examine({"command": "env"}, place)).model_copy(update={"read_only": True})
    call = ToolCall("c", {"command": "env"}, place, analysis, secrets=SECRETS.named(["GATE_KEY"]))

    shown = (await Bash().run(call)).output

    assert "PATH=" in shown
    assert "GATE_KEY" not in shown


async def test_the_middle_of_a_long_output_takes_no_half_of_a_secret_along(place: Place) -> None:
    # The kept head ends at character 60,000 of the stream, and this puts a secret on that border.
    command = (
        "touch x; head -c 59990 /dev/zero | tr '\\0' a; printf %s \"$GATE_KEY\"; head -c 300000 /dev/zero | tr '\\0' b"
    )

    shown = await bash(command, place)

    assert "open-ses" not in shown
    assert len(shown) <= 30_000


async def test_no_form_of_a_secret_is_in_a_result_or_in_what_is_kept_of_it(place: Place, tmp_path: Path) -> None:
    returning = Returning(Offloaders(tmp_path / "kept"), TokenCounter(), SECRETS)
    raw = await bash(
        'printf "%s\\n" "$GATE_KEY" "${GATE_KEY^^}"; printf %s "$GATE_KEY" | base64; '
        'printf "xy%s" "$GATE_KEY" | base64; '
        'printf %s "$GATE_KEY" | od -An -tx1; yes "$GATE_KEY filler" | head -2000 > /dev/stdout',
        place,
        masked=False,
    )
    assert KEY in raw
    wanted = ask(edited_by="ana", arguments=f'{{"command": "echo {KEY}"}}')

    result = await returned(returning, raw, wanted, metadata={KEY: [Path(KEY), {"deep": KEY.upper()}]})

    (file,) = files_below(tmp_path / "kept", "tool_result-*")
    for text in (result.model_dump_json(), file.read_text()):
        assert SECRETS.masker.found(text) == ""
        assert "[secret GATE_KEY]" in text
    assert "ana changed the arguments" in text_of(result)


async def test_an_attachment_that_holds_a_secret_is_left_out(tmp_path: Path) -> None:
    returning = Returning(Offloaders(tmp_path), TokenCounter(), SECRETS)
    data = base64.b64encode(b"PDF " + KEY.encode() + b" more").decode()
    block = DataBlock.model_validate(
        {"source": {"type": "base64", "media_type": "application/pdf", "data": data}, "name": "a.pdf"}
    )

    result = await returned(returning, (TextBlock(text="here:"), block))

    assert result.output == (
        TextBlock(text="here:"),
        TextBlock(text="[an attachment is left out: it holds [secret GATE_KEY]]"),
    )


def test_findings_and_words_of_a_model_are_masked_and_arguments_are_not() -> None:
    analysis = SECRETS.out_of_analysis(CallAnalysis(cwd="/w", notice=f"+key = {KEY}", safety="", arguments_error=KEY))
    call = ToolCallBlock(id="a", name="Bash", input=f'{{"command": "echo {KEY}"}}')
    said = (TextBlock(text=f"It is {KEY}"), ThinkingBlock(thinking=KEY), HintBlock(hint=KEY), call)

    assert (analysis.notice, analysis.arguments_error) == ("+key = [secret GATE_KEY]", "[secret GATE_KEY]")
    text, thought, hint, same = SECRETS.out_of_content(said)
    assert (text, thought) == (TextBlock(text="It is [secret GATE_KEY]"), TextBlock(text="[secret GATE_KEY]"))
    assert (hint, same) == (HintBlock(hint="[secret GATE_KEY]"), call)


def test_a_function_gets_what_its_call_was_given_and_nothing_after_it() -> None:
    with given({"GATE_KEY": KEY}):
        assert secret("GATE_KEY") == KEY
        with pytest.raises(ToolError, match="no secret 'OTHER'"):
            secret("OTHER")

    with pytest.raises(ToolError, match="no secret 'GATE_KEY'"):
        secret("GATE_KEY")


@pytest.mark.parametrize(
    ("name", "value", "why"),
    [
        ("GATE_KEY", "abcde", "fewer than 6 characters"),
        ("GATE_KEY", "abc     \n", "fewer than 6 characters"),
        ("GATE-KEY", KEY, "can't be a variable"),
        ("LD_PRELOAD", KEY, "changes which code runs"),
        ("path", KEY, "changes which code runs"),
        ("GATE_KEY", "a\0bcdefgh", "without NUL"),
        ("GATE_KEY", "x" * 20_001, "at most 20000"),
        ("GATE_KEY", "gate_key", "stands in a name"),
        ("GATE_KEY", "Secret", "stands in a name"),
    ],
)
def test_a_secret_that_could_not_be_kept_is_refused_without_its_value(name: str, value: str, why: str) -> None:
    with pytest.raises(SecretsSetupError, match=why) as refused:
        WorkerSecrets({name: value})

    assert value not in str(refused.value) or value.lower() in name.lower()


def test_a_tool_gets_what_every_tool_gets_and_its_own() -> None:
    spec = AgentSpec.model_validate({"secrets": {"allow": ["A"], "tools": {"Bash": ["B", "A"]}}})
    plain: dict[str, Any] = AgentSpec().model_dump(mode="json")

    assert spec.secrets is not None
    assert spec.secrets == Allowed(allow=("A",), tools={"Bash": ("B", "A")})
    assert (spec.secrets.given_to("Bash"), spec.secrets.given_to("Read"), spec.secrets.names) == (
        ("A", "B"),
        ("A",),
        ("A", "B"),
    )
    assert "secrets" not in plain
    told = with_secrets_named("Be brief.", spec.secrets)
    assert told.startswith("Be brief.\n\nThese secrets are environment variables")
    assert told.endswith("- A: every tool\n- B: Bash")
    assert with_secrets_named("Be brief.", None) == "Be brief."
