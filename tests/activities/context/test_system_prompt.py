"""prepare_reply: what it finds for a prompt in real folders, and which texts cross the history again."""

from pathlib import Path
from typing import Any

import pytest
from temporalio.exceptions import ApplicationError
from temporalio.testing import ActivityEnvironment

from longhaul.activities.attempt.workspaces import Workspaces
from longhaul.activities.context.context_cache import Specs
from longhaul.activities.context.system_prompt import MOST_REMINDERS, Prompting
from longhaul.activities.contract import NOT_HERE, PrepareReply
from longhaul.activities.prepare_reply import Preparation
from longhaul.activities.tools.registry import Toolbox, default_tools
from longhaul.activities.worker_parts import WorkerParts
from longhaul.agent.entries import Prepared
from longhaul.agent.values.conversation.messages import HintBlock
from longhaul.agent.values.spec.agent_spec import AgentSpec
from longhaul.agent.values.spec.workspace import Workspace


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "root").mkdir()
    return tmp_path / "root"


def write_skill(folder: Path, name: str, body: str = "Three parts of sand.", triggers: str = "") -> None:
    folder.mkdir(parents=True, exist_ok=True)
    front = f"name: {name}\ndescription: All about {name}.\n" + (f"triggers: [{triggers}]\n" if triggers else "")
    (folder / "SKILL.md").write_text(f"---\n{front}---\n{body}\n")


class Worker:
    """One worker's preparation, with nothing in its memory."""

    def __init__(self, root: Path, **spec: Any) -> None:
        given = {"model": "scripted:x", "system_prompt": "Lay bricks.", "tools": ["Read"], **spec}
        self.spec = AgentSpec.model_validate({"workspace": Workspace(root=str(root)), **given})
        self.specs = Specs()
        data = root.parent / "data"
        prompting = Prompting(root.parent / "templates")
        parts = WorkerParts(workspaces=Workspaces(data), toolbox=Toolbox(default_tools()), specs=self.specs)
        self._activity = Preparation(parts, prompting)

    async def prepare(self, before: Prepared | None = None, **ask: Any) -> Prepared:
        known = {"tools_digest": before.spec_digest, "prompt_digest": before.prompt_digest} if before else {}
        told = PrepareReply.model_validate({"spec": self.spec, "session_key": "wall", **known, **ask})
        return await ActivityEnvironment().run(self._activity.prepare_reply, told)

    async def prompt(self, prepared: Prepared) -> str:
        async def nobody() -> Any:
            raise AssertionError("this worker has not kept the texts that it prepared")

        return (await self.specs.get(prepared.spec_digest, nobody)).system_prompt


def hints_of(prepared: Prepared) -> list[str]:
    blocks = [block for message in prepared.hints for block in message.content if isinstance(block, HintBlock)]
    return [block.hint for block in blocks if isinstance(block.hint, str)]


async def test_an_agent_without_skills_records_no_prompt(root: Path) -> None:
    worker = Worker(root)

    first = await worker.prepare()
    second = await worker.prepare(first)

    assert (first.system_prompt, first.prompt_digest, first.hints) == (None, "", ())
    assert first.tools is not None
    assert (second.tools, second.system_prompt, second.spec_digest) == (None, None, first.spec_digest)
    assert await worker.prompt(first) == "Lay bricks."


async def test_a_prompt_with_skills_crosses_once_and_again_when_one_changes(root: Path, tmp_path: Path) -> None:
    write_skill(tmp_path / "skills" / "mortar", "mortar")
    worker = Worker(root, skills=[str(tmp_path / "skills")])

    first = await worker.prepare()
    same = await Worker(root, skills=[str(tmp_path / "skills")]).prepare(first)
    write_skill(tmp_path / "skills" / "roof", "roof")
    changed = await worker.prepare(first)

    assert first.system_prompt is not None
    assert first.system_prompt.startswith("Lay bricks.\n\n# Skills\n")
    assert f"- mortar: All about mortar. ({tmp_path}/skills/mortar/SKILL.md)" in first.system_prompt
    assert (same.system_prompt, same.prompt_digest, same.tools) == (None, "", None)
    assert same.spec_digest == first.spec_digest
    assert changed.system_prompt is not None
    assert "- roof: All about roof." in changed.system_prompt
    assert changed.tools is None
    assert changed.spec_digest != first.spec_digest
    assert changed.fixed_tokens > first.fixed_tokens


async def test_an_agent_with_the_tool_is_told_names_and_descriptions_alone(root: Path) -> None:
    write_skill(root / "skills" / "mortar", "mortar")
    worker = Worker(root, skills=["skills"], tools=["Read", "Skill"])

    prompt = await worker.prompt(await worker.prepare())

    assert prompt.endswith("load it with the tool Skill before you begin.\n- mortar: All about mortar.")


@pytest.mark.proves("D5")
async def test_triggers_in_the_agents_settings_bring_texts_of_files_and_their_own(root: Path) -> None:
    write_skill(root / "skills" / "mortar", "mortar", triggers="cement")
    write_skill(root / "skills" / "roof", "roof", body="Tiles.")
    knowledge = [
        {"name": "roof", "triggers": ["rain*"], "text": "The file goes first."},
        {"name": "mortar", "triggers": ["wall"]},
        {"name": "deploy", "triggers": ["/deploy", "ship it"], "text": "Ask Ana first."},
        {"name": "nobody's", "triggers": ["wall"]},
    ]
    worker = Worker(root, skills=["skills"], agent_context={"knowledge": knowledge})
    alone = Worker(root, agent_context={"knowledge": knowledge})

    both = hints_of(await worker.prepare(request="Build a WALL against raindrops"))
    task = hints_of(await alone.prepare(request="please /deploy it"))

    assert [hint.splitlines()[2] for hint in both] == ["Three parts of sand.", "Tiles."]
    assert hints_of(await worker.prepare(request="cement")) == [both[0]]
    assert task == [
        "The request mentions what the skill 'deploy' is about. It says:\n<skill>\nAsk Ana first.\n</skill>"
    ]
    assert hints_of(await alone.prepare(request="They ship items")) == []


async def test_a_prompt_that_becomes_plain_again_is_said_to_be(root: Path) -> None:
    worker = Worker(root, skills=["skills"])
    write_skill(root / "skills" / "mortar", "mortar")
    first = await worker.prepare()
    (root / "skills" / "mortar" / "SKILL.md").unlink()

    second = await worker.prepare(first)

    assert second.system_prompt == "Lay bricks."


async def test_new_tools_cross_without_the_prompt(root: Path) -> None:
    write_skill(root / "skills", "mortar")
    first = await Worker(root, skills=["skills"]).prepare()

    second = await Worker(root, skills=["skills"], tools=["Read", "Grep"]).prepare(first)

    assert second.tools is not None
    assert second.system_prompt is None


@pytest.mark.proves("B1", "D5")
async def test_all_parts_stand_in_their_order(root: Path) -> None:
    (root / "AGENTS.md").write_text("Use tabs.")
    write_skill(root / "skills", "mortar")
    context = {"system_prefix": "You work for Ana.", "system_suffix": "Be brief.", "repo_skills": True}
    worker = Worker(root, skills=["skills"], agent_context=context)

    prompt = await worker.prompt(await worker.prepare())

    places = [prompt.index(part) for part in ("work for Ana", "Lay bricks", "Use tabs", "- mortar", "Be brief")]
    assert places == sorted(places)


async def test_project_instructions_are_left_alone_unless_they_are_asked_for(root: Path) -> None:
    (root / "AGENTS.md").write_text("Use tabs.")
    worker = Worker(root, agent_context={"system_prefix": "Hello."})

    assert await worker.prompt(await worker.prepare()) == "Hello.\n\nLay bricks."


async def test_a_named_template_lies_on_the_worker(root: Path, tmp_path: Path) -> None:
    (tmp_path / "templates").mkdir()
    (tmp_path / "templates" / "terse.md").write_text("[{system_prompt}|{suffix}]")
    worker = Worker(root, agent_context={"prompt_template": "terse", "system_suffix": "Be {brief}."})

    assert await worker.prompt(await worker.prepare()) == "[Lay bricks.|Be {brief}.]"


async def test_a_template_or_a_folder_that_this_worker_lacks_may_be_on_another(root: Path) -> None:
    for spec in ({"agent_context": {"prompt_template": "terse"}}, {"skills": ["/no/such/folder"]}):
        with pytest.raises(ApplicationError, match=r"'terse'|'/no/such/folder'") as failure:
            await Worker(root, **spec).prepare()
        assert (failure.value.type, failure.value.non_retryable) == (NOT_HERE, False)


async def test_a_broken_template_of_the_worker_ends_the_reply_with_its_fault(root: Path, tmp_path: Path) -> None:
    (tmp_path / "templates").mkdir()
    (tmp_path / "templates" / "terse.md").write_text("{sytem_prompt}")

    with pytest.raises(
        ApplicationError, match=r"no placeholder 'sytem_prompt'.*in the worker's template 'terse'"
    ) as it:
        await Worker(root, agent_context={"prompt_template": "terse"}).prepare()

    assert (it.value.type, it.value.non_retryable) == ("setup", True)


@pytest.mark.parametrize("name", ["missing", "../outside", "link", "a\0b", "file"])
async def test_folders_in_the_workspace_can_not_stop_a_session_or_lead_out_of_it(
    root: Path, tmp_path: Path, name: str
) -> None:
    write_skill(tmp_path / "outside", "secret")
    (root / "link").symlink_to(tmp_path / "outside")
    (root / "file").write_text("no folder")
    worker = Worker(root, skills=[name])

    assert await worker.prompt(await worker.prepare()) == "Lay bricks."


@pytest.mark.proves("D5")
async def test_a_trigger_brings_the_skill_behind_the_request_once(root: Path) -> None:
    write_skill(root / "skills" / "mortar", "mortar", "Three parts of sand.", triggers="mortar")
    write_skill(root / "skills" / "roof", "roof", "Tiles.", triggers="roof")
    worker = Worker(root, skills=["skills"])

    first = await worker.prepare(request="Mix MORTAR, please")
    (source,) = [block.source for block in first.hints[0].content if isinstance(block, HintBlock)]
    again = await worker.prepare(first, request="More mortar", hinted=[source])
    write_skill(root / "skills" / "mortar", "mortar", "Four parts of sand.", triggers="mortar")
    changed = await worker.prepare(first, request="More mortar", hinted=[source])

    assert len(first.hints) == 1
    assert "<skill>\nThree parts of sand.\n</skill>" in hints_of(first)[0]
    assert again.hints == ()
    assert "Four parts of sand." in hints_of(changed)[0]
    assert changed.system_prompt is None


async def test_a_request_can_not_trigger_more_than_a_few(root: Path) -> None:
    for number in range(MOST_REMINDERS + 3):
        write_skill(root / "skills" / f"s{number}", f"s{number}", triggers="all")

    assert len((await Worker(root, skills=["skills"]).prepare(request="all of them")).hints) == MOST_REMINDERS


async def test_the_time_and_the_room_that_is_left_are_said_when_they_are_asked_for(root: Path) -> None:
    worker = Worker(root, inject_runtime_state=True, model_config={"context_length": 10_000})

    (hint,) = hints_of(await worker.prepare(context_tokens=6_000))

    assert hint.startswith("The time is 20")
    assert hint.endswith("About 4000 of the 10000 tokens of your context are left.")
    assert (await Worker(root).prepare(context_tokens=6_000)).hints == ()
