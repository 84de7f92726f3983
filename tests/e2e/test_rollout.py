"""A new build of the workers: what would break open sessions is found, and is not given to them."""

import asyncio
import json
import sys
import uuid
from dataclasses import dataclass
from typing import Any

import pytest

from longhaul.agent.values.conversation.messages import FinishedReason, Msg
from longhaul.starter.cli.doctor.local_checks import Check
from longhaul.starter.cli.doctor.server_checks import versions
from longhaul.starter.dev_server.dev_server import DevServer
from longhaul.starter.settings import Settings
from longhaul.starter.worker_host import deployment as rollout
from longhaul.starter.worker_host.deployment import set_current
from tests.e2e.crash.crash_stage import Job, Stage, call, says, until
from tests.e2e.processes import WorkerSettings, environment, worker

pytestmark = pytest.mark.server

PROGRAM = "tests.e2e.odd_build"
SAYS_SO = "a versioned worker says that it gets no work"
Answer = tuple[int, dict[str, Any]]
BY_REFERENCE = "a word that is long " * 20_000
"""Above what goes inline: it lies in the blob store."""


@dataclass(frozen=True)
class Builds:
    """Workers and commands of several builds of one deployment, which see the same files."""

    stage: Stage
    deployment: str

    def of(self, build: str, **more: str) -> WorkerSettings:
        variables = {"LONGHAUL_DEPLOYMENT": self.deployment, "LONGHAUL_BUILD": build, **more}
        return self.stage.one_directory(program=(PROGRAM, "worker"), further=variables)

    async def is_known(self, build: str) -> None:
        async def known() -> bool:
            return build in [each.build for each in await rollout.versions(self.stage.app.client, self.deployment)]

        await until(known, f"the server knows build {build}")

    async def rollout(self, installed: WorkerSettings, *arguments: str) -> Answer:
        """Exit code and document of a command that is run from that build's installation."""
        command = [sys.executable, "-m", PROGRAM, "rollout", *arguments, "--json"]
        process = await asyncio.create_subprocess_exec(
            *command, env=environment(installed), stdout=asyncio.subprocess.PIPE, cwd=self.stage.directory
        )
        assert process.stdout is not None
        said = await process.stdout.read()
        return await process.wait(), json.loads(said) if said else {}

    async def doctor(self, build: str) -> Check:
        """Of an installation of that build."""
        return await versions(self.stage.app.client, Settings(deployment=self.deployment, build=build))


@dataclass(frozen=True)
class Story:
    """What came of a build that breaks sessions and of one that does not."""

    done: Job
    parked: Job
    odd: Answer
    checked: Answer
    promoted: Answer
    elsewhere: Answer
    standing: Answer
    final: Msg
    second: int
    """Process id of the second build's worker."""
    doctor: dict[str, Check]
    """What it says where a build is installed."""


@pytest.fixture(scope="module")
async def story(temporal_server: DevServer, tmp_path_factory: pytest.TempPathFactory) -> Story:
    """Build one has sessions. Build odd would break one of them, build two takes them over while one waits."""
    stage = await Stage.on(temporal_server.address, tmp_path_factory.mktemp("rollout"))
    builds = Builds(stage, f"crew-{uuid.uuid4().hex[:6]}")
    one, odd, two = builds.of("one"), builds.of("odd", ODD_BUILD="1"), builds.of("two")
    done = stage.job("done", [says("all done")])
    parked = stage.job("parked", [says("", call("sign")), says("all done")])
    async with worker(one) as first:
        await until(lambda: first.has_said("no build is the current one; run\n  longhaul rollout promote one"), SAYS_SO)
        await set_current(stage.app.client, builds.deployment, "one")
        await bring_to_rest(done, parked)
        async with worker(odd):
            refused = await builds.rollout(odd, "promote", "odd")
        async with worker(two) as second:
            checked = await builds.rollout(two, "check")
            promoted = await builds.rollout(two, "promote", "two")
            elsewhere = await builds.rollout(two, "promote", "odd")
            await first.kill()
            await parked.approve()
            final = await parked.finish()
            standing = await builds.rollout(two, "status")
            doctor = {build: await builds.doctor(build) for build in ("one", "two", "no build")}
            doctor["nowhere"] = await Builds(stage, "nobody").doctor("one")
            doctor["unversioned"] = await Builds(stage, "").doctor("")
    return Story(done, parked, refused, checked, promoted, elsewhere, standing, final, second.pid, doctor)


async def bring_to_rest(done: Job, *parked: Job) -> None:
    await asyncio.gather(done.start(BY_REFERENCE), *(job.start() for job in parked))
    await asyncio.gather(done.finish(), *(job.is_waiting() for job in parked))

    async def written_down() -> bool:
        return bool((await done.session.status()).saved_seq)

    await until(written_down, "the session is written down")


@pytest.mark.proves("S6", "X21", "X9")
def test_a_build_that_would_break_a_session_is_not_promoted(story: Story) -> None:
    code, said = story.odd

    assert (code, said["promoted"]) == (1, False)
    assert [each["session_id"] for each in said["broken"]] == [story.done.session.id]
    assert "longhaul.checkpoint" in said["broken"][0]["why"]


@pytest.mark.proves("X9")
def test_a_build_with_which_all_go_on_is_promoted(story: Story) -> None:
    code, said = story.checked

    assert {each["session_id"]: each["ok"] for each in said["sessions"]} == {
        story.done.session.id: True,
        story.parked.session.id: True,
    }
    assert (code, said["ok"], said["open"], said["checked"], said["build"]) == (0, True, 2, 2, "two")
    assert story.promoted[0] == 0


def test_an_installation_checks_no_build_but_its_own(story: Story) -> None:
    assert story.elsewhere == (2, {})


@pytest.mark.proves("X21")
def test_a_session_that_waits_goes_on_with_the_promoted_build(story: Story) -> None:
    assert story.final.finished_reason is FinishedReason.COMPLETED
    assert [line["worker"] for line in story.parked.ledger("began")] == [story.second]


def test_the_doctor_says_whether_a_build_gets_work(story: Story) -> None:
    found = {build: (check.ok, check.fix) for build, check in story.doctor.items()}

    assert found["two"][0]
    assert found["one"] == (False, "run `longhaul rollout promote one` where its workers run")
    assert "the current one is 'two'" in story.doctor["one"].detail
    assert "the current one is 'not set'" in story.doctor["nowhere"].detail
    assert found["unversioned"] == (True, "")
    assert found["no build"] == (False, "unset it, or give it another name")


def test_the_builds_of_a_deployment_are_listed_with_their_sessions(story: Story) -> None:
    versions = {each["build"]: each for each in story.standing[1]["versions"]}

    assert versions.keys() == {"one", "odd", "two"}
    assert versions["two"]["status"] == "current"
    assert versions["one"]["status"] in {"draining", "drained"}
    assert versions["odd"]["status"] in {"inactive", "created"}
    assert sum(each["sessions"] for each in versions.values()) == 2
