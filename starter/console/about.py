"""The page about a session: its use, its rules, its tasks; its timeline, step by step; and its events."""

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from starlette.types import ASGIApp

from longhaul.agent.permission.preview import brief
from longhaul.agent.plain.text import gist
from longhaul.agent.values.budget import NANOS, ModelSpent
from longhaul.agent.values.conversation.messages import Usage
from longhaul.agent.views.event_types import AgentEvent
from longhaul.agent.views.trajectory import TrajectoryEvent
from longhaul.starter import render
from longhaul.starter.console.console_request import NAMED, Visit
from longhaul.starter.console.pages import number, page
from longhaul.starter.console.transcript import fitted, marked
from longhaul.starter.render_session import caching, plans, standing_still
from longhaul.starter.serve.requests import session_of
from longhaul.starter.serve.response_bodies import RulesBody, Steps, Tasks
from longhaul.workflows.contract import Status

PAGE_STEPS = 100
PAGE_EVENTS = 100
MOST_SHOWN = 100
"""Times that a context was made shorter."""
GIST_CHARS = 200
MOST_RULES = 200
_WORDS = {
    "condensation_request": "asked for a shorter context",
    "condensation": "made the context shorter",
    "observation": "result",
    "rejection": "denied",
}


@dataclass(frozen=True, slots=True)
class AmountRow:
    """One line of the table, ready to be read."""

    model: str
    calls: str
    read: str
    cached: str
    written: str
    thought: str
    money: str


@dataclass(frozen=True, slots=True)
class TimelineStep:
    """One line of the timeline."""

    seq: int
    """Of its entry."""
    at: str
    what: str
    text: str
    link: str
    """To the page of the transcript that it stands on; empty for what stands in no message."""
    copy: str
    """To the form that begins another session after this step."""
    state: str


@dataclass(frozen=True, slots=True)
class EventRow:
    """One line of the events."""

    seq: int
    at: str
    what: str
    """Its type, or the name of one that is a session's own."""
    text: str


async def about(visit: Visit) -> ASGIApp:
    status: Status
    tasks: Tasks
    rules: RulesBody
    status, tasks, rules = await asyncio.gather(visit.ask("status"), visit.ask("tasks"), visit.ask("rules"))
    return await page(
        "about",
        visit,
        status=status,
        amounts=list(amounts(status)),
        cache=[line.plain.strip() for line in caching(status)],
        budget=list(status.budget.lines()) if status.budget else [],
        trouble=[line.plain for line in standing_still(status)],
        plan=[line.plain.strip() for line in plans(status)],
        tasks=tasks.tasks,
        rules=[f"{rule.behavior.value} {marked(rule.spelt())}" for rule in rules.rules[:MOST_RULES]],
        rules_left_out=max(len(rules.rules) - MOST_RULES, 0),
    )


def amounts(status: Status) -> Iterator[AmountRow]:
    """A line for each model, and the sum behind several; then what nobody has told the use of."""
    by_model = status.by_model
    yield from (_amount(marked(name), by_model[name]) for name in sorted(by_model))
    if len(by_model) > 1:
        known = ModelSpent(
            calls=sum(one.calls for one in by_model.values()),
            usage=sum((one.usage for one in by_model.values()), Usage()),
            nanos=sum(one.nanos for one in by_model.values()),
        )
        yield _amount("together", known)
    if status.lost.calls:
        yield _amount("lost (estimated)", status.lost)


def _amount(model: str, spent: ModelSpent) -> AmountRow:
    usage = spent.usage
    return AmountRow(
        model=model,
        calls=_count(spent.calls),
        read=_count(usage.input_tokens),
        cached=_count(usage.cache_input_tokens),
        written=_count(usage.output_tokens),
        thought=_count(usage.reasoning_tokens),
        money=f"${spent.nanos / NANOS:.4f}" if spent.nanos else "-",
    )


def _count(tokens: int) -> str:
    return f"{tokens:,}" if tokens else "-"


async def timeline(visit: Visit) -> ASGIApp:
    """A page of it, as the address says: it is read from the entry on that the page begins with. Raises Problem."""
    start, entry = number(visit, "from", 0), number(visit, "entry", 1)
    status: Status
    found: Steps
    asked: Mapping[str, int] = {"from": start, "entry": entry, "limit": PAGE_STEPS}
    status, found = await asyncio.gather(visit.ask("status"), visit.ask("history", asked))
    later = {"entry": str(found.entry), "from": str(found.next)}
    newest = max(status.seq - PAGE_STEPS // 2, 1)
    return await page(
        "timeline",
        visit,
        status=status,
        steps=[step_of(visit, event) for event in found.events],
        earlier=visit.here("timeline", **_before(start, entry)) if start or entry > 1 else "",
        later=visit.here("timeline", **later) if found.next is not None else "",
        newest=visit.here("timeline", entry=str(newest)) if found.next is not None else "",
    )


def _before(start: int, entry: int) -> dict[str, str]:
    """The page before: nobody has counted the steps in front of an entry, so it may have some of this one too."""
    if start:
        return {"entry": str(entry), "from": str(max(start - PAGE_STEPS, 0))}
    return {"entry": str(max(entry - PAGE_STEPS // 2, 1))}


async def context(visit: Visit) -> ASGIApp:
    """How full it is, and each time that it was made shorter. Raises Problem."""
    status: Status
    found: Steps
    asked = {"kind": "condensation", "limit": MOST_SHOWN}
    status, found = await asyncio.gather(visit.ask("status"), visit.ask("history", asked))
    steps = [(step_of(visit, event), fitted(event.text)) for event in reversed(found.events)]
    return await page("context", visit, status=status, steps=steps)


def step_of(visit: Visit, event: TrajectoryEvent) -> TimelineStep:
    """One line. Of a shorter context it leads to the first message that left it."""
    what = _WORDS.get(event.kind, event.kind)
    place = event.message
    if event.kind == "condensation" and event.forgotten:
        what = f"{what} by {len(event.forgotten)} messages"
        place = event.forgotten[0]
    who = event.tool or event.by
    text = gist(event.input) if event.kind == "action" else event.text or event.thinking
    return TimelineStep(
        seq=event.seq,
        at=event.at,
        what=f"{what} of {event.source}" if not who else f"{what}: {marked(who)}",
        text=brief(" ".join(text.split()), GIST_CHARS),
        link="" if place is None else visit.here(**{"from": str(place)}),
        copy=visit.here("change", entry=str(event.seq)) if visit.may("steer") else "",
        state=event.state,
    )


async def events(visit: Visit) -> ASGIApp:
    """A page of what was recorded of it, the newest unless the address says another. Raises Problem."""
    session = session_of(visit.call("history"))
    status: Status = await visit.ask("status")
    async with asyncio.timeout(NAMED["history"].seconds):
        last = await session.last_event()
        start = max(number(visit, "from", last - PAGE_EVENTS + 1), 1)
        found = (await session.events(start)).events[:PAGE_EVENTS]
    end = found[-1].seq if found else last
    return await page(
        "events",
        visit,
        status=status,
        rows=list(event_rows(found)),
        earlier=visit.here("log", **{"from": str(max(start - PAGE_EVENTS, 1))}) if start > 1 else "",
        later=visit.here("log", **{"from": str(end + 1)}) if end < last else "",
        newest=visit.here("log") if end < last else "",
    )


def event_rows(found: Sequence[AgentEvent]) -> Iterator[EventRow]:
    """A line each, in the words of the terminal where it has any."""
    tools = {event.tool_call_id: event.tool_call_name for event in found if event.tool_call_name}
    for event in found:
        what = event.name if event.type == "CUSTOM" else event.type
        text = " ".join("; ".join(_describe_event(event, tools)).split())
        yield EventRow(event.seq, event.created_at, marked(what.lower().replace("_", " ")), brief(text, GIST_CHARS))


def _describe_event(event: AgentEvent, tools: Mapping[str, str]) -> Iterator[str]:
    match event.type:
        case render.CONFIRMED:
            yield from (line.plain for line in render.decided(event, lambda call: tools.get(call, call)))
        case "REQUIRE_USER_CONFIRM" | "REQUIRE_EXTERNAL_EXECUTION":
            yield from (line.plain for line in render.waiting_calls_text(event))
        case "CUSTOM":
            line = render.stillness(event) or render.line_of(event)
            yield "" if line is None else line.plain
        case _:
            named = event.tool_call_name or tools.get(event.tool_call_id, "") or event.model_name or event.name
            yield from (part for part in (named, event.delta) if part)
