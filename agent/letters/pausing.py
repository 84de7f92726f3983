"""Standing still between steps: the letters that ask for it, and what a paused session does all the same.

A step is the first of these that there is to do: run the calls that may run together, make the context shorter, ask the
model. What follows from it without touching the world belongs to it: calls are looked at and judged, so that people see
what waits for them, and a reply that is answered ends.
"""

from typing import Any

from longhaul.agent.decisions.checkpoints import should_save
from longhaul.agent.decisions.rollover import Load
from longhaul.agent.entries import all_entries as e
from longhaul.agent.letters.bodies import PauseSession, Resume, TakeStep, Unusable
from longhaul.agent.letters.doubts import blocking
from longhaul.agent.letters.letter import Received
from longhaul.agent.plain.times import iso
from longhaul.agent.record import Record
from longhaul.agent.steps import Act, Answer, BeginStep, Checkpoint, Compress, Park, Prepare, Probe, Remind, Step, Think
from longhaul.agent.values.conversation.messages import ToolCallState

BEGINS = (Prepare, Think, Compress, Act, Answer, Remind, Probe)
"""What a paused session does not do."""


def unless_paused(step: Step, record: Record, load: Load) -> Step:
    """The step, or what a paused session does in its place."""
    pause = record.pause
    if pause is None or not isinstance(step, BEGINS) or pause.step == "begun":
        return step
    if load.running:
        return Park("running calls")
    if pause.step == "asked":
        return BeginStep(e.StepBegun())
    return Checkpoint() if should_save(record, load) else Park("resume")


def pause(record: Record, body: PauseSession) -> Received:
    entry = e.PauseBegun(by=body.by, why=body.why)
    if record.pause is None:
        return Received((entry,), {"paused": True, "already": False})
    # Of a step that was asked for and has not begun, whoever pauses again wants to hear no more.
    answer = {"paused": True, "already": True, "since": iso(record.pause.at), "by": record.pause.by}
    return Received((entry,) if record.pause.step == "asked" else (), answer)


def resume(record: Record, body: Resume) -> Received:
    """Whatever it stands still for: that it is paused, or held until somebody has looked."""
    entries: list[e.AnyEntry] = []
    if record.life.hold:
        entries.append(e.HoldEnded(by=body.by))
    if record.pause is not None:
        entries.append(e.PauseEnded(by=body.by))
    if not entries:
        raise Unusable("there is nothing to resume: the session is neither held nor paused")
    return Received(tuple(entries), {"resumed": True})


def take_step(record: Record, body: TakeStep) -> Received:
    if record.pause is None:
        raise Unusable("the session is not paused; pause it first, then let it take step after step")
    if record.pause.step:
        return Received((), {"stepping": True, "already": True})
    if why_not := _why_no_step(record):
        raise Unusable(f"there is no step to take: {why_not}")
    return Received((e.StepAsked(by=body.by),), {"stepping": True, "already": False})


def _why_no_step(record: Record) -> str:
    reply = record.reply
    if record.life.hold:
        return f"the session is held ({record.life.hold})"
    if reply is None:
        return "" if record.requests.queue or record.compaction.asked else "no request waits"
    if blocked := [doubt.call_id for doubt in blocking(record)]:
        return f"somebody has to say whether {blocked} happened; see `settle`"
    unfinished = [call for call in reply.calls.values() if call.state is not ToolCallState.FINISHED]
    if unfinished and all(call.waits_for for call in unfinished):
        return f"the reply waits for answers to {[call.block.id for call in unfinished]}"
    return ""


def told(record: Record) -> dict[str, Any]:
    """For the status: since when, by whom and why, and whether it takes a step."""
    pause = record.pause
    if pause is None:
        return {}
    return {
        "paused_since": iso(pause.at),
        "paused_by": pause.by,
        "paused_why": pause.why,
        "stepping": bool(pause.step),
    }
