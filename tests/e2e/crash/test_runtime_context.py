"""What hooks and tools are told of their call is told again, as it was, to the attempt behind a kill."""

from pathlib import Path

import pytest

from longhaul.agent.values.conversation.messages import FinishedReason
from longhaul.starter.dev_server.dev_server import DevServer
from tests.e2e.crash.crash_stage import Stage, call, says, until
from tests.e2e.processes import worker

pytestmark = pytest.mark.server

WITNESS = "tests.e2e.context_witness:ContextWitness"


@pytest.mark.proves("E8")
@pytest.mark.parametrize(("where", "call_id"), [("model", ""), ("acting", "look")])
async def test_the_attempt_behind_a_kill_is_told_what_the_killed_one_was(
    temporal_server: DevServer, tmp_path: Path, where: str, call_id: str
) -> None:
    stage = await Stage.on(temporal_server.address, tmp_path)
    job = stage.job("context", [says("", call("look")), says("done")], [f"{where}.told"])
    given = {"root": str(job.root), "ticket": {"number": 4711}}

    async def told_to_both() -> bool:
        return len({line["worker"] for line in job.ledger(f"{where} was told")}) == 2

    async with worker(stage.worker(LONGHAUL_MIDDLEWARES=WITNESS)) as first:
        job.reply_id = await job.session.submit("go", request_id="r-violet", context=given)
        await job.is_held(f"{where}.told")
        async with worker(stage.worker(LONGHAUL_MIDDLEWARES=WITNESS)):
            await first.kill()
            await until(told_to_both, "an attempt on the other worker")
            job.release()
            final = await job.finish()
            state = await job.session.state()

    killed, *others = job.ledger(f"{where} was told")
    taken_over = next(line for line in others if line["worker"] != killed["worker"])
    assert killed["about"] == taken_over["about"]
    assert killed["about"] == {
        "agent": "crash",
        "user": None,
        "session": job.session.id,
        "reply": job.reply_id,
        "request": "r-violet",
        "call": call_id,
        "model call": 0 if where == "model" else killed["about"]["model call"],
        "ticket": {"number": 4711},
        "state": job.session.id,
    }
    assert killed["attempt"] < taken_over["attempt"]
    assert (killed["scratch"], taken_over["scratch"]) == (None, None)
    assert final.finished_reason is FinishedReason.COMPLETED
    assert "4711" not in state.model_dump_json()
