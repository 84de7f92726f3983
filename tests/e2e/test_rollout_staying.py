"""A build that would break some sessions: these stay with the one they have, and move when a build suits them."""

import uuid
from dataclasses import dataclass

import pytest

from longhaul.starter.dev_server.dev_server import DevServer
from longhaul.starter.worker_host.deployment import set_current, standing_of
from tests.e2e.crash.crash_stage import Job, Stage, call, says
from tests.e2e.processes import worker
from tests.e2e.test_rollout import Answer, Builds, bring_to_rest
from tests.workflows.operations import push_over

pytestmark = pytest.mark.server


@dataclass(frozen=True)
class Crew(Builds):
    """Builds, and which of them sessions are with."""

    async def promote(self, build: str, *flags: str, **more: str) -> Answer:
        await self.is_known(build)
        return await self.rollout(self.of(build, **more), "promote", build, *flags)

    async def with_which(self, *jobs: Job) -> list[str]:
        client = self.stage.app.client
        return [(await standing_of(client, self.deployment, job.session.workflow_id)).build for job in jobs]


async def says_next(job: Job) -> str:
    return (await job.session.reply("And now?")).get_text_content()


@pytest.mark.proves("X21")
async def test_what_would_break_stays_where_it_is_and_the_others_go_on(
    temporal_server: DevServer, tmp_path_factory: pytest.TempPathFactory
) -> None:
    stage = await Stage.on(temporal_server.address, tmp_path_factory.mktemp("staying"))
    crew = Crew(stage, f"crew-{uuid.uuid4().hex[:6]}")
    long, short = (stage.job(name, [says(word) for word in ("done", "here", "moved")]) for name in ("long", "short"))
    parked = stage.job("parked", [says("", call("sign")), says("all done " * 12_000)])
    async with worker(crew.of("one")):
        await crew.is_known("one")
        await set_current(stage.app.client, crew.deployment, "one")
        await bring_to_rest(long, parked)
        await bring_to_rest(short)
        async with worker(crew.of("odd", ODD_BUILD="1")) as odd:
            refused, _ = await crew.promote("odd", ODD_BUILD="1")
            code, said = await crew.promote("odd", "--stay", ODD_BUILD="1")
            await parked.finish()
            await parked.session.pause()
            here = [await says_next(long), await says_next(short)]
            stayed = await crew.with_which(long, short, parked)
            await push_over(stage, long.session)
            rolled = [await says_next(long), *await crew.with_which(long)]
            async with worker(crew.of("two")):
                _, held_back = await crew.promote("two")
                code_of_two, promoted = await crew.promote("two", "--stay")
                moved = [await says_next(short), *await crew.with_which(short, parked)]

    assert (refused, code, said["promoted"]) == (1, 0, True)
    assert {each["workflow_id"]: each["build"] for each in said["staying"]} == {
        long.session.workflow_id: "one",
        short.session.workflow_id: "one",
    }
    assert [line["worker"] for line in parked.ledger("began")] == [odd.pid]
    # A history that begins again can go on with any build.
    assert (here, stayed, rolled) == (["here", "here"], ["one", "one", "odd"], ["moved", "odd"])
    # The way back is held to what the build behind has written.
    assert [each["session_id"] for each in held_back["broken"]] == [parked.session.id]
    assert (code_of_two, promoted["moved"]) == (0, [short.session.workflow_id])
    assert promoted["staying"] == [{"workflow_id": parked.session.workflow_id, "build": "odd"}]
    assert moved == ["moved", "two", "odd"]
