"""The request for a summary fits the window, whatever the conversation; and what is left of it keeps its pairs."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from temporalio.exceptions import ApplicationError

from longhaul.activities.compression.condensers import Question, by_bytes
from longhaul.activities.compression.summary_call import Candidate, SummaryAttempt, SummaryCall
from longhaul.activities.compression.summary_texts import Piece, answer_room, fitted, shortened, summary_room
from longhaul.activities.models.failures.status_table import ProviderError
from longhaul.activities.models.model import AnswerSchema, Delta, ModelReply, ModelRequest
from longhaul.activities.models.providers import Providers
from longhaul.agent.values.conversation.messages import AssistantMsg, HintBlock, Msg, TextBlock, Usage, UserMsg
from longhaul.agent.values.spec.agent_spec import ContextConfig, ModelConfig
from tests.activities.compression.stage import Stage, call, info_of, result, script


class Recorder:
    """A model that keeps what it was asked, and finds it too long as often as it is told."""

    def __init__(self, overflows: int = 0, answers: Sequence[str] = ("{}",)) -> None:
        self.requests: list[ModelRequest] = []
        self._overflows = overflows
        self._answers = list(answers)

    async def call(self, model: str, request: ModelRequest) -> ModelReply:
        self.requests.append(request)
        if len(self.requests) <= self._overflows:
            raise ProviderError(400, "context_length_exceeded", "too long")
        return ModelReply((TextBlock(text=self._answers.pop(0)),), Usage(input_tokens=1), model)


def asking(model: Recorder, window: int, output: int = 8_192) -> SummaryCall:
    config, attempt = ModelConfig(max_output_tokens=output), SummaryAttempt(1, is_last=False)
    return SummaryCall(model.call, [Candidate("m", window)], config, call_number=0, attempt=attempt, count=by_bytes)


@pytest.mark.parametrize(
    ("window", "output", "room"),
    [(200_000, 8_192, 20_000), (32_768, 8_192, 8_192), (16_000, 8_192, 4_000), (1_000, 8_192, 250), (1_000, 50, 100)],
)
def test_the_answer_has_a_tenth_of_the_window_or_what_a_reply_may_take(window: int, output: int, room: int) -> None:
    assert answer_room(window, output) == room


def test_results_lose_their_middle_before_anything_else_does() -> None:
    pieces = [Piece("goal"), Piece("a" * 9_000 + "END", is_result=True), Piece("b" * 900)]

    text = fitted(pieces, 1_100, by_bytes)

    assert text.startswith("goal\n\naaa")
    assert "characters left out here" in text
    assert text.endswith("aEND\n\n" + "b" * 900)


def test_then_the_older_messages_lose_theirs_and_it_is_said() -> None:
    pieces = [Piece("goal"), *(Piece(f"[{number}] " + "b" * 300) for number in range(50))]

    text = fitted(pieces, 600, by_bytes)

    assert by_bytes(text) <= 600
    assert text.startswith("goal\n\n[45 parts of the conversation are left out here")
    assert "[45] " in text
    assert text.endswith("[49] " + "b" * 300)


def test_what_the_agent_was_told_and_the_earlier_summary_stay() -> None:
    pieces = [Piece("RULES", whole=True), Piece("BEFORE", whole=True), *(Piece("b" * 300) for _ in range(50))]

    assert fitted(pieces, 400, by_bytes).startswith("RULES\n\nBEFORE\n\nb")


@given(st.text(max_size=400), st.integers(-3, 150))
def test_a_shortened_text_never_exceeds_its_cap(text: str, cap: int) -> None:
    assert by_bytes(shortened(text, cap, by_bytes)) <= max(cap, 0)


@pytest.mark.proves("B3")
@given(
    st.lists(st.builds(Piece, st.text(max_size=300), is_result=st.booleans(), whole=st.booleans()), max_size=30),
    st.integers(0, 300),
    st.sampled_from([1, 2, 7]),
)
def test_material_always_fits(pieces: list[Piece], budget: int, per_token: int) -> None:
    def count(text: str) -> int:
        return -(-len(text) // per_token)

    assert count(fitted(pieces, budget, count)) <= budget


async def test_a_provider_that_counts_otherwise_is_sent_less() -> None:
    model = Recorder(overflows=2)
    pieces = [Piece(f"[{number}] " + "b" * 300) for number in range(500)]

    await asking(model, 20_000, output=500).ask(Question("s", pieces, "Sum up."))

    sizes = [by_bytes(request.messages[0].get_text_content()) for request in model.requests]
    assert sizes[0] > 17_000
    assert sizes[1] < 12_000
    assert sizes[2] < 6_000


async def test_the_second_question_says_what_was_wrong_with_the_first_answer() -> None:
    model = Recorder(answers=["No idea.", json.dumps({"goal": "moon"})])
    form = AnswerSchema("write", "", {"type": "object", "properties": {"goal": {"type": "string"}}})

    answer = await asking(model, 20_000).ask(Question("s", [Piece("talk")], "Sum up.", form))

    first, second = (request.messages[0].get_text_content() for request in model.requests)
    assert first == "<material>\ntalk\n</material>\n\nSum up."
    assert second.startswith(
        first + "\n\nYour last answer could not be used: the reply was no JSON object but the text"
    )
    assert json.dumps(form.schema) in second
    assert answer.fields == {"goal": "moon"}


async def test_a_request_that_nothing_can_make_fit_is_an_error_that_says_so() -> None:
    with pytest.raises(ApplicationError, match="does not fit m's window of 1000 tokens: shorten") as caught:
        await asking(Recorder(), 1_000).ask(Question("s", [], "word " * 1_000))

    assert info_of(caught.value).type == "context_overflow"


async def test_the_reply_is_bounded_by_the_room_that_was_left_for_it() -> None:
    model = Recorder()

    await asking(model, 16_000).ask(Question("s", [], "Sum up."))

    assert model.requests[0].config.max_output_tokens == 4_000


@pytest.mark.parametrize(("fallback", "address"), [("openai:b", None), ("anthropic:b", "https://models.example")])
async def test_a_summary_by_the_fallback_is_asked_for_where_that_models_provider_is(
    fallback: str, address: str | None
) -> None:
    model = Recorder(overflows=3, answers=["short"])
    config = ModelConfig(base_url="https://models.example", api_key_env="TEAM_KEY", fallback_model=fallback)
    candidates = [Candidate("anthropic:a", 9_000), Candidate(fallback, 9_000)]

    await SummaryCall(
        model.call, candidates, config, call_number=0, attempt=SummaryAttempt(1, is_last=True), count=by_bytes
    ).ask(Question("s", [], "Sum up."))

    asked = [(request.model, request.config.base_url) for request in model.requests]
    assert asked == [("anthropic:a", "https://models.example")] * 3 + [(fallback, address)]


class Watched(Providers):
    """The real ones, with every request kept."""

    def __init__(self, seen: list[ModelRequest]) -> None:
        super().__init__({})
        self._seen = seen

    async def call(self, full_model_name: str, request: ModelRequest, on_delta: Callable[[Delta], None]) -> ModelReply:
        self._seen.append(request)
        return await super().call(full_model_name, request, on_delta)


words = st.text(st.sampled_from("ab \n</>{}日"), max_size=2_000)


@st.composite
def turns(draw: st.DrawFn) -> list[list[Msg]]:
    """Turns that a cut may stand between: a message, or a call with its result and maybe a hint in the middle."""
    made: list[list[Msg]] = []
    for number in range(draw(st.integers(1, 12))):
        text = draw(words)
        kind = draw(st.sampled_from(["user", "assistant", "call"]))
        if kind == "call":
            hint = [UserMsg("user", [HintBlock(hint=text)])] if draw(st.booleans()) else []
            made.append([call(f"c{number}", arguments=text), *hint, result(f"c{number}", draw(words))])
        else:
            made.append([UserMsg("ana", text) if kind == "user" else AssistantMsg("smith", text)])
    return made


@pytest.mark.proves("B3")
@settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data(), story=turns(), window=st.integers(1_500, 9_000), old=st.sampled_from(["", "Before. " * 300]))
async def test_any_conversation_cut_between_turns_fits_and_keeps_its_pairs(
    tmp_path: Path, data: st.DataObject, story: list[list[Msg]], window: int, old: str
) -> None:
    messages = [message for turn in story for message in turn]
    starts = [sum(map(len, story[:number])) for number in range(len(story) + 1)]
    keep_from = data.draw(st.sampled_from(starts))
    alone = [start for start, turn in zip(starts, story, strict=False) if len(turn) == 1 and start < keep_from]
    pinned = tuple(data.draw(st.lists(st.sampled_from(alone), unique=True).map(sorted))) if alone else ()
    chain = ContextConfig(condensers=data.draw(st.sampled_from([("summary",), ("mask_observations", "drop_oldest")])))
    seen: list[ModelRequest] = []
    stage = Stage(script(tmp_path))
    stage.providers = Watched(seen)

    try:
        await stage.compress(
            messages, old, keep_from=keep_from, pinned=pinned, context_length=window, context_config=chain
        )
    except ApplicationError as nothing_to_do:
        assert "found nothing more to leave out" in nothing_to_do.message  # noqa: PT017  both outcomes are right
        assert stage.new_context() == []

    for request in seen:
        form = json.dumps(request.answer.schema) if request.answer else ""
        assert by_bytes(request.system + request.messages[0].get_text_content() + form) <= window - window // 4
    told = stage.new_context()
    calls = [block.id for message in told for block in message.get_tool_calls()]
    results = [block.id for message in told for block in message.get_tool_results()]
    assert calls == results


@pytest.mark.parametrize(("window", "room"), [(8_000, 2_000), (30_000, 4_096), (60_000, 6_000), (200_000, 20_000)])
def test_a_summary_behind_the_context_needs_a_tenth_of_the_window(window: int, room: int) -> None:
    assert summary_room(window) == room
