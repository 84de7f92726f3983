"""A job with a bit of everything for storms of faults, and the judgement of what came of it.

It thinks aloud, calls three tools at once, runs a command, reads, asks a person, outgrows its context, and is asked
again.
"""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TypeVar

from temporalio.service import RPCError

from longhaul.agent.values.conversation.messages import FinishedReason, Msg, ToolResultBlock, ToolResultState
from longhaul.starter.client.reading.queries import SILENCES, NoSession
from longhaul.starter.connection.connect import Unreachable
from tests.e2e.crash.crash_stage import Job, Stage, assert_well_formed, bash, call, says
from tests.workflows.tools import page_text

PATIENCE_SECONDS = 300.0
"""A lost `once` call is given up after half a minute, and the storm goes on meanwhile."""
OFTEN, ONCE = ("look", "glance", "put"), ("send", "Bash", "sign")
WEATHER = "weather"
"""The file in which the command leaves a line."""
UNKNOWN = "Outcome unknown"
ANSWERS = ("All done.", "Still done.")
SMALL = {"context_length": 6_000, "max_output_tokens": 500}

Answer = TypeVar("Answer")


def _says(page: int, text: str, *calls: dict[str, object], thinking: str = "") -> dict[str, object]:
    """In a third of a second: one that outlasts most workers of a storm would use up its attempts."""
    return says(f"{text} {page_text(page, 2_500)}", *calls, thinking=thinking, delay_ms=25, chunk_chars=250)


FULL = (
    _says(
        1, "Three.", *(call(name, takes_seconds=0.2) for name in ("look", "put", "send")), thinking="Where to begin?"
    ),
    _says(2, "A command.", bash(f"echo wet >> {WEATHER}; sleep 0.2")),
    _says(6, "A glance.", call("glance")),
    _says(3, "Sign.", call("sign", takes_seconds=0.2)),
    _says(4, ANSWERS[0]),
    _says(5, ANSWERS[1]),
)


@dataclass(frozen=True)
class Verdict:
    """What became of a job, by what its tools have really done."""

    session: str
    lost: str = ""
    """What is missing or false; empty when all is there."""
    doubled: tuple[str, ...] = ()
    """Calls of kind `once` whose effect happened more than once."""
    unsaid: tuple[str, ...] = ()
    """Calls of kind `once` of which the record says what is not so, and nothing of an unknown outcome."""
    unknown_outcomes: tuple[str, ...] = ()
    """Calls of which the record says that their outcome is unknown."""
    effects: dict[str, int] = field(default_factory=dict[str, int])

    @property
    def holds(self) -> bool:
        return not (self.lost or self.doubled or self.unsaid)


def full_job(stage: Stage, name: str) -> Job:
    return stage.job(name, FULL, model_config=SMALL)


async def play(job: Job, seconds: float = PATIENCE_SECONDS) -> Verdict:
    """Ask twice, approve what asks for it, and judge; through workers and servers that come and go."""
    try:
        async with asyncio.timeout(seconds):
            finals = [await _answered(job, text, seconds) for text in ("go", "and now?")]
            return await insisting(lambda: judge(job, finals))
    except TimeoutError:
        return Verdict(job.session.id, lost=f"no answer within {seconds:g} s")
    except NoSession as error:
        return Verdict(job.session.id, lost=f"{error}: {error.__cause__!r}")


async def _answered(job: Job, text: str, seconds: float) -> Msg:
    async def ask() -> None:
        job.reply_id = await job.session.submit(text, request_id=f"r-{text}")

    await insisting(ask)
    return await insisting(lambda: job.finish(seconds))


async def insisting(act: Callable[[], Awaitable[Answer]]) -> Answer:
    """Again while the server is away, or no worker lives long enough to answer; what it does may be done twice."""
    while True:
        try:
            return await act()
        except (RPCError, Unreachable, *SILENCES):
            await asyncio.sleep(0.2)


async def judge(job: Job, finals: list[Msg]) -> Verdict:
    results = await job.results()
    effects = {name: job.effects(name) for name in (*OFTEN, "send", "sign")} | {"Bash": _lines(job)}
    return Verdict(
        session=job.session.id,
        lost=await _lost(job, finals, results),
        doubled=tuple(name for name in ONCE if effects[name] > 1),
        unsaid=tuple(name for name in ONCE if name in results and not _is_true(results[name], effects[name])),
        unknown_outcomes=tuple(
            name for name in ONCE if name in results and results[name].state is ToolResultState.UNKNOWN
        ),
        effects=effects,
    )


def _lines(job: Job) -> int:
    file = job.root / WEATHER
    return len(file.read_text().splitlines()) if file.exists() else 0


def _is_true(result: ToolResultBlock, effects: int) -> bool:
    """Whether the record says what happened, or that nobody knows."""
    match result.state:
        case ToolResultState.SUCCESS:
            return effects == 1
        case ToolResultState.UNKNOWN:
            return result.get_text().startswith(UNKNOWN)
        case _:
            return False


async def _lost(job: Job, finals: list[Msg], results: dict[str, ToolResultBlock]) -> str:
    """What a person would miss, in words."""
    for final, answer in zip(finals, ANSWERS, strict=True):
        if final.finished_reason is not FinishedReason.COMPLETED or answer not in final.get_text_content():
            return f"a reply ended as {final.finished_reason}: {final.error}"
    if missing := {*OFTEN, *ONCE} - results.keys():
        return f"no result of {sorted(missing)}"
    for name in OFTEN:
        if results[name].state is not ToolResultState.SUCCESS or not job.effects(name):
            return f"{name} ended as {results[name].state}: {results[name].get_text()[:200]}"
    transcript = await job.transcript()
    told = Counter(message.get_text_content().partition("<<")[0].strip() for message in transcript)
    if wrong := [
        text for text in ("go", "Three.", "A command.", "A glance.", "Sign.", "and now?", *ANSWERS) if told[text] != 1
    ]:
        return f"not told once: {wrong}"
    try:
        assert_well_formed(transcript)
        await job.replays()
    except AssertionError as error:
        return str(error)
    return ""
