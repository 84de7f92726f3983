"""A run as a picture: an SVG that the server draws, with a lane for a session and each sub-agent below it, and the same
as a table.

Time is drawn to scale while something works. A longer quiet time, such as a night in which a call waits, is cut to a
narrow strip that says how long it was.
"""

import asyncio
import time
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

from starlette.types import ASGIApp
from temporalio.client import WorkflowQueryFailedError
from temporalio.service import RPCError

from longhaul.agent.plain.errors import Damaged, Unavailable
from longhaul.agent.plain.measures import iso
from longhaul.agent.values.budget import NANOS
from longhaul.agent.values.conversation.tools import EFFECT_WORDS
from longhaul.agent.views.run_spans import Span
from longhaul.starter.client.reading.queries import NoSession
from longhaul.starter.console.console_request import Visit
from longhaul.starter.console.pages import number, page
from longhaul.starter.console.transcript import marked
from longhaul.starter.render import took
from longhaul.starter.serve.problems import Problem
from longhaul.starter.serve.response_bodies import RunBody
from longhaul.workflows.contract import Status

MOST_ENTRIES = 6_000
"""The newest that a picture is drawn from."""
MOST_LANES = 24
"""Sessions of one tree; each is asked for its own spans."""
ZOOMS = (1, 2, 4, 8, 16)
WIDTH = 1_080
MARGIN = 8
ROW = 16
BAND = 8
AREA = 56
QUIET_SHARE = 0.08
"""Of the time in which something works: a longer quiet time is cut."""
CUT_PIXELS = 34
SAME_PIXELS = 2
"""Spans of one kind that are as near are one mark, which says how many: nobody could point at one of them."""
BAR_PIXELS = 3
"""What is narrower is no bar, which would look as if it took longer: it is a point, `POINT_PIXELS` wide."""
POINT_PIXELS = 7
TICK_PIXELS = 72
"""Between two lines of the axis, at least."""
CHAR_PIXELS = 6
_SECOND, _MINUTE, _HOUR, _DAY = 1_000, 60_000, 3_600_000, 86_400_000
STEPS = (
    *(10, 20, 50, 100, 200, 500),
    *(_SECOND * many for many in (1, 2, 5, 10, 15, 30)),
    *(_MINUTE * many for many in (1, 2, 5, 10, 15, 30)),
    *(_HOUR * many for many in (1, 2, 3, 6, 12)),
    *(_DAY * many for many in (1, 2, 7, 14, 28, 56, 112, 364)),
)
"""Of the axis, in milliseconds."""
MOST_ROWS = 4
PAGE_SPANS = 100
GIST_CHARS = 120

_MOMENTS = ("retry", "shutdown", "restore", "compression", "failure", "resolve")
_WORKS = ("model", "tool")
_WAITS = ("person", "outside", "sleep", "pause")
_SIGNS = {"retry": "↻", "shutdown": "✕", "restore": "↺", "compression": "⇣", "failure": "!", "resolve": "✓"}
_WORDS = {
    "reply": "reply",
    "model": "model call",
    "tool": "tool call",
    "person": "waits for a person",
    "outside": "waits for an outside system",
    "sleep": "sleeps",
    "pause": "paused",
    "sub-agent": "sub-agent",
    "retry": "retry",
    "shutdown": "worker stopped",
    "restore": "restored",
    "compression": "context compressed",
    "failure": "model failed",
    "resolve": "outcome resolved",
}


@dataclass(frozen=True, slots=True)
class Lane:
    """One session of the tree."""

    name: str
    agent: str
    session_id: str
    spans: tuple[Span, ...]
    depth: int


class RunMark(NamedTuple):
    """What is drawn for a span, or for several that are too near to each other."""

    kind: str
    x: float
    y: float
    width: float
    """True to scale; 0 for a point, which is drawn around `x`."""
    height: float
    says: str
    link: str
    sign: str
    many: bool = False


class Label(NamedTuple):
    x: float
    y: float
    text: str


class QuietStrip(NamedTuple):
    """A quiet time that is narrower than it was."""

    x: float
    width: float
    text: str


@dataclass(slots=True)
class Picture:
    """All that the template draws, in pixels."""

    width: int
    height: float = 0
    marks: list[RunMark] = field(default_factory=list[RunMark])
    labels: list[Label] = field(default_factory=list[Label])
    lines: list[float] = field(default_factory=list[float])
    """Above each lane."""
    cuts: list[QuietStrip] = field(default_factory=list[QuietStrip])
    ticks: list[Label] = field(default_factory=list[Label])
    """Of the axis: times since the start."""
    grid: list[float] = field(default_factory=list[float])
    """Where its lines are."""
    began_at: str = ""
    """ISO time from which the axis counts."""
    read: str = ""
    """Points of an area: what the first lane's model calls read."""
    cached: str = ""
    money: str = ""
    """Points of a line: what all lanes have cost so far."""
    area_y: float = 0
    area_says: str = ""


@dataclass(frozen=True, slots=True)
class SpanRow:
    """One line of the table."""

    seq: int
    at: str
    took: str
    lane: str
    what: str
    says: str
    link: str


async def run(visit: Visit) -> ASGIApp:
    """Raises Problem."""
    zoom = number(visit, "zoom", 1)
    zoom = max(one for one in ZOOMS if one <= max(zoom, 1))
    start = number(visit, "from", 0)
    status: Status = await visit.ask("status")
    lanes = await lanes_of(visit, status, max(status.seq - MOST_ENTRIES, 1))
    now = int(time.time() * 1000)
    drawn = await asyncio.to_thread(picture, visit, lanes, WIDTH * zoom, now)
    rows = sorted(((span, lane) for lane in lanes for span in lane.spans), key=lambda pair: pair[0].start)
    following = {"from": str(start + PAGE_SPANS), "zoom": str(zoom)}
    before = {"from": str(max(start - PAGE_SPANS, 0)), "zoom": str(zoom)}
    return await page(
        "run",
        visit,
        status=status,
        drawn=drawn,
        zoom=zoom,
        zooms=[(one, visit.here("run", zoom=str(one))) for one in ZOOMS],
        rows=[_row(visit, span, lane, now) for span, lane in rows[start : start + PAGE_SPANS]],
        total=len(rows),
        is_cut=status.seq > MOST_ENTRIES,
        first=start + 1,
        earlier=visit.here("run", **before) if start else "",
        later=visit.here("run", **following) if start + PAGE_SPANS < len(rows) else "",
    )


async def lanes_of(visit: Visit, status: Status, entry: int) -> list[Lane]:
    """The session's, and below it those of its sub-agents, as far as they can be read."""
    found: RunBody = await visit.ask("run", {"entry": entry})
    lanes = [Lane(marked(status.session_id), status.agent, status.session_id, found.spans, 0)]
    at = 0
    while at < len(lanes) < MOST_LANES:
        lead = lanes[at]
        children = [span for span in lead.spans if span.kind == "sub-agent" and span.session_id]
        children = sorted(children, key=lambda span: span.start)[: MOST_LANES - len(lanes)]
        told = await asyncio.gather(*(_lane(visit, span, lead.depth + 1) for span in children))
        lanes[at + 1 : at + 1] = [lane for lane in told if lane is not None]
        at += 1
    return lanes


async def _lane(visit: Visit, span: Span, depth: int) -> Lane | None:
    try:
        found: RunBody = await visit.ask("run", {}, path={"agent": span.name, "session": span.session_id})
    except (Problem, NoSession, WorkflowQueryFailedError, RPCError, Unavailable, Damaged, TimeoutError):
        return None
    return Lane(marked(span.name), span.name, span.session_id, found.spans, depth)


class Scale:
    """From milliseconds to pixels: a straight line while something works, and in between."""

    def __init__(self, lanes: Sequence[Lane], width: int, now: int) -> None:
        spans = [span for lane in lanes for span in lane.spans]
        start = min((span.start for span in spans), default=now - 1)
        end = max((now if span.end is None else span.end for span in spans), default=now)
        busy = _merged(
            (span.start, now if span.end is None else span.end)
            for span in spans
            if span.kind in _WORKS or span.kind in _MOMENTS
        )
        busy = [(start, start), *busy, (max(end, start + 1), max(end, start + 1))]
        works = sum(till - since for since, till in busy) or max(end - start, 1)
        quiet = [(till, since) for (_, till), (since, _) in pairwise(busy)]
        self.cuts = [(since, till) for since, till in quiet if till - since > max(works * QUIET_SHARE, 1_000)]
        drawn = works + sum(till - since for since, till in quiet) - sum(till - since for since, till in self.cuts)
        cut = min(CUT_PIXELS, (width - 2 * MARGIN) / 2 / max(len(self.cuts), 1))
        self.pixels = pixels = (width - 2 * MARGIN - cut * len(self.cuts)) / max(drawn, 1)
        """Of a millisecond that is not cut."""
        self.start, self._times, self._places, x, at = start, [start], [float(MARGIN)], float(MARGIN), start
        for since, till in self.cuts:
            x += (since - at) * pixels
            self._times.append(since)
            self._places.append(x)
            x += cut
            self._times.append(till)
            self._places.append(x)
            at = till
        self.end = max(end, at + 1)
        self._times.append(self.end)
        self._places.append(x + (self.end - at) * pixels)

    def __call__(self, moment: int) -> float:
        place = min(max(bisect_right(self._times, moment) - 1, 0), len(self._times) - 2)
        since, till = self._times[place], self._times[place + 1]
        share = (min(max(moment, since), till) - since) / max(till - since, 1)
        return self._places[place] + share * (self._places[place + 1] - self._places[place])


def _merged(intervals: Iterator[tuple[int, int]]) -> list[tuple[int, int]]:
    found = list[tuple[int, int]]()
    for since, till in sorted(intervals):
        if found and since <= found[-1][1]:
            found[-1] = (found[-1][0], max(till, found[-1][1]))
        else:
            found.append((since, till))
    return found


def picture(visit: Visit, lanes: Sequence[Lane], width: int, now: int) -> Picture:
    """`now`: when what lasts ends in the picture, in milliseconds since 1970."""
    drawing = Drawing(visit, Picture(width), Scale(lanes, width, now), now)
    drawn, y = drawing.drawn, 22.0
    for since, till in drawing.scale.cuts:
        x = drawing.scale(since)
        drawn.cuts.append(QuietStrip(x, drawing.scale(till) - x, took((till - since) / 1000)))
    for lane in lanes:
        y = drawing.lane(lane, y, own_row=len(lanes) == 1)
    _draw_areas(drawn, lanes, drawing.scale, y)
    drawn.height = y + AREA + 26
    _draw_axis(drawn, drawing.scale)
    return drawn


@dataclass(frozen=True, slots=True)
class Drawing:
    """A picture that is being made."""

    visit: Visit
    drawn: Picture
    scale: Scale
    now: int

    def lane(self, lane: Lane, y: float, *, own_row: bool) -> float:
        """Returns where the next lane begins. `own_row`: no lane is drawn for its sub-agents."""
        self.drawn.lines.append(y)
        name = f"{'└ ' if lane.depth else ''}{lane.name}"
        self.drawn.labels.append(Label(MARGIN + 14 * lane.depth, y + 13, name))
        y += 18
        by_kind = {kind: [span for span in lane.spans if span.kind == kind] for kind in _WORDS}
        self._row(lane, by_kind["reply"], y, BAND)
        self._row(lane, [one for kind in _MOMENTS for one in by_kind[kind]], y - 2, BAND + 4)
        y += BAND + 3
        waits = [one for kind in _WAITS for one in by_kind[kind]]
        rows = [by_kind["model"], *_stacked(by_kind["tool"], self.now), *_stacked(waits, self.now)]
        rows += _stacked(by_kind["sub-agent"], self.now) if own_row else []
        for row in filter(None, rows):
            self._row(lane, row, y, ROW - 4)
            y += ROW
        return y + 8

    def _row(self, lane: Lane, spans: Sequence[Span], y: float, height: float) -> None:
        cluster = list[Span]()
        for span in sorted(spans, key=lambda one: one.start):
            if cluster and not self._is_same(cluster, span):
                self.drawn.marks.append(self._mark(lane, cluster, y, height))
                cluster = []
            cluster.append(span)
        if cluster:
            self.drawn.marks.append(self._mark(lane, cluster, y, height))

    def _is_same(self, cluster: Sequence[Span], span: Span) -> bool:
        """Whether the span is too near to those to be a mark of its own."""
        x, end, last = self.scale(span.start), self._end(span), cluster[-1]
        widest = max(end - x, self._end(last) - self.scale(last.start))
        gap = POINT_PIXELS if widest < BAR_PIXELS else SAME_PIXELS
        is_near = x - self._end(last) < gap and end - self.scale(cluster[0].start) < ROW
        return is_near and _kind(last) == _kind(span)

    def _end(self, span: Span) -> float:
        return self.scale(self.now if span.end is None else span.end)

    def _mark(self, lane: Lane, cluster: Sequence[Span], y: float, height: float) -> RunMark:
        first, many = cluster[0], len(cluster) > 1
        x, end = self.scale(first.start), max(map(self._end, cluster))
        works = sum(self._end(span) - self.scale(span.start) for span in cluster)
        says = _says(first, self.now)
        says = f"{len(cluster)} of {_WORDS[first.kind]}, the first: {says}" if many else says
        # A bar over many short calls with nothing between them would look like one long call.
        is_point = end - x < BAR_PIXELS or works < (end - x) / 2
        link = self.visit.beside_agent(lane.agent, lane.session_id, "timeline", entry=str(first.seq))
        sign = _SIGNS.get(first.kind, "")
        place = (x + end) / 2 if is_point and not sign else x
        return RunMark(_kind(first), place, y, 0 if is_point else end - x, height, says, link, sign, many)


def _kind(span: Span) -> str:
    return f"{span.kind} {span.effect or ''} {span.state}".strip()


def _stacked(spans: Sequence[Span], now: int) -> list[list[Span]]:
    """Calls at the same time are below each other, as far as there are rows."""
    rows = list[list[Span]]()
    for span in sorted(spans, key=lambda one: one.start):
        free = (row for row in rows if (now if row[-1].end is None else row[-1].end) <= span.start)
        row = next(free, rows[-1] if len(rows) == MOST_ROWS else None)
        if row is None:
            rows.append([span])
        else:
            row.append(span)
    return rows


def _says(span: Span, now: int) -> str:
    """`Bash make test: tool call, once, 2.4 s, success`."""
    named = marked(f"{span.name} {span.says}"[:GIST_CHARS]).strip()
    seconds = ((now if span.end is None else span.end) - span.start) / 1000
    parts = [_WORDS[span.kind], EFFECT_WORDS[span.effect].partition(":")[0] if span.effect else ""]
    parts += ["" if span.kind in _MOMENTS else took(seconds) + (" so far" if span.end is None else ""), span.state]
    if span.input_tokens:
        parts.append(
            f"{span.input_tokens:,} tokens read, {span.cached_tokens:,} cached, {span.output_tokens:,} written"
        )
    if span.nanos:
        parts.append(f"${span.nanos / NANOS:.4f}")
    told = ", ".join(filter(None, parts))
    return f"{named}: {told}" if named else told


def _draw_areas(drawn: Picture, lanes: Sequence[Lane], scale: Scale, y: float) -> None:
    calls = sorted((span for span in lanes[0].spans if span.kind == "model"), key=lambda one: one.start)
    most = max((span.input_tokens + span.output_tokens for span in calls), default=0)
    drawn.area_y = y
    drawn.lines.append(y)
    if not most:
        return
    base = y + AREA + 8
    read, cached = [f"{MARGIN:.1f},{base:.1f}"], [f"{MARGIN:.1f},{base:.1f}"]
    for span in calls:
        x = scale(span.end or span.start)
        for points, tokens in ((read, span.input_tokens + span.output_tokens), (cached, span.cached_tokens)):
            points.append(f"{x:.1f},{points[-1].partition(',')[2]}")
            points.append(f"{x:.1f},{base - tokens / most * (AREA - 14):.1f}")
    right = f"{drawn.width - MARGIN:.1f}"
    for points in (read, cached):
        points += [f"{right},{points[-1].partition(',')[2]}", f"{right},{base:.1f}"]
    drawn.read, drawn.cached = " ".join(read), " ".join(cached)
    paid = sorted((span.end or span.start, span.nanos) for lane in lanes for span in lane.spans if span.nanos)
    total, so_far = sum(nanos for _, nanos in paid), 0
    money = list[str]()
    for moment, nanos in paid:
        before = base - so_far / total * (AREA - 14)
        so_far += nanos
        money += [f"{scale(moment):.1f},{before:.1f}", f"{scale(moment):.1f},{base - so_far / total * (AREA - 14):.1f}"]
    drawn.money = " ".join(money)
    if drawn.width < WIDTH:
        drawn.area_says = f"tokens of a model call, at most {most:,}"
        return
    says = f"tokens of a model call, at most {most:,}; darker: read from a cache"
    drawn.area_says = says + (f"; line: cost, ${total / NANOS:.4f} in the end" if total else "")


def _draw_axis(drawn: Picture, scale: Scale) -> None:
    """Lines at round times since the start; behind each cut, where there is room, also what the time is there."""
    drawn.began_at = iso(scale.start)
    step = next((one for one in STEPS if one * scale.pixels >= TICK_PIXELS), STEPS[-1])
    edges = [scale.start, *(moment for cut in scale.cuts for moment in cut), scale.end]
    free = 0.0
    for since, till, after in zip(edges[::2], edges[1::2], [*edges[2::2], None], strict=True):
        first = -((scale.start - since) // step) * step
        times = [*range(first, till - scale.start + 1, step)]
        drawn.grid += [scale(scale.start + time) for time in times]
        labels = [(since, _elapsed(since - scale.start, most=2))] if since - scale.start != first else []
        labels += [(scale.start + time, _elapsed(time)) for time in times]
        for place, (moment, text) in enumerate(labels):
            x = scale(moment) + 3
            end = x + len(text) * CHAR_PIXELS
            following = labels[place + 1][0] if place + 1 < len(labels) else after
            if x >= free and end <= (drawn.width if following is None else scale(following)):
                drawn.ticks.append(Label(x, 12, text))
                free = end + CHAR_PIXELS


def _elapsed(milliseconds: int, most: int = 4) -> str:
    """`0 s`, `0.2 s`, `1 h 30 min`: of a round time all of it, else its `most` largest units."""
    rest, parts = milliseconds, list[str]()
    for size, unit in ((_DAY, "d"), (_HOUR, "h"), (_MINUTE, "min")):
        number, rest = divmod(rest, size)
        parts += [f"{number} {unit}"] if number else []
    seconds = round(rest / _SECOND, 2 if most > 2 else 1)
    parts += [f"{seconds:g} s"] if seconds or not parts else []
    return " ".join(parts[:most])


def _row(visit: Visit, span: Span, lane: Lane, now: int) -> SpanRow:
    seconds = ((now if span.end is None else span.end) - span.start) / 1000
    parts = [_WORDS[span.kind], EFFECT_WORDS[span.effect].partition(":")[0] if span.effect else ""]
    return SpanRow(
        seq=span.seq,
        at=iso(span.start),
        took="" if span.kind in _MOMENTS else took(seconds) + (" so far" if span.end is None else ""),
        lane=lane.name,
        what=", ".join(filter(None, (*parts, span.state))),
        says=marked(f"{span.name} {span.says}"[:GIST_CHARS]).strip(),
        link=visit.beside_agent(lane.agent, lane.session_id, "timeline", entry=str(span.seq)),
    )
