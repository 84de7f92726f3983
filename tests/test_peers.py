"""The comparison with peers: what it installs, what it reads out of a history, and what it draws."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from google.protobuf.timestamp_pb2 import Timestamp
from temporalio.api.enums.v1 import EventType
from temporalio.api.history.v1 import HistoryEvent

from benchmarks.contenders import Load
from benchmarks.pages import with_section
from benchmarks.peers.__main__ import gave_up
from benchmarks.peers.course import Course, Step
from benchmarks.peers.curves import curves
from benchmarks.peers.drawing import draw
from benchmarks.peers.report import findings, step_rows
from benchmarks.peers.sides import PROGRAMS
from benchmarks.peers.trial import COMPLETED, Size, Trial
from benchmarks.peers.venvs import LOCKS, PACKAGES, versions

EVENT = {
    "start": EventType.EVENT_TYPE_WORKFLOW_EXECUTION_STARTED,
    "schedule": EventType.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED,
    "complete": EventType.EVENT_TYPE_ACTIVITY_TASK_COMPLETED,
    "marker": EventType.EVENT_TYPE_MARKER_RECORDED,
}


class Paper:
    """Axes that remember what was drawn on them."""

    def __init__(self) -> None:
        self.lines: list[tuple[list[float], list[float], dict[str, Any]]] = []

    def plot(self, *points: Any, **style: Any) -> None:
        across, up = points
        self.lines.append((list(across), list(up), style))

    def crosses(self) -> list[tuple[list[float], list[float]]]:
        return [(across, up) for across, up, style in self.lines if style.get("marker") == "x"]


def trial(contender: str, steps: int, *, course: tuple[Step, ...] = (), ended: str = COMPLETED, **named: Any) -> Trial:
    given = {"chars": 5_000, "sessions": 1, "wall": 20.0, "history_bytes": 1_000, **named}
    return Trial(contender=contender, steps=steps, ended=ended, why="", done=len(course) or steps, worker_cpu=8.0,
                 server_cpu=15.0, events=12.0, actions=2.0, runs=1, course=course, **given)  # fmt: skip


def event(kind: str, number: int, at_ms: int, *, activity: str = "", of: int = 0) -> HistoryEvent:
    made = HistoryEvent(event_id=number, event_type=EVENT[kind], event_time=Timestamp(nanos=at_ms * 1_000_000))
    if activity:
        made.activity_task_scheduled_event_attributes.activity_type.name = activity
    if of:
        made.activity_task_completed_event_attributes.scheduled_event_id = of
    return made


def answered(number: int, at_ms: int, of: int, answer: bytes) -> HistoryEvent:
    made = event("complete", number, at_ms, of=of)
    made.activity_task_completed_event_attributes.result.payloads.add(data=answer)
    return made


def read_within(activity: str, number: int, at_ms: int) -> HistoryEvent:
    made = event("marker", number, at_ms)
    told = made.marker_recorded_event_attributes
    told.marker_name, told.workflow_task_completed_event_id = "core_local_activity", 21
    told.details["data"].payloads.add(data=json.dumps({"activity_type": activity}).encode())
    return made


@pytest.mark.parametrize("name", list(PACKAGES))
def test_a_lock_file_of_the_peers_pins_every_package_by_hash_and_names_no_host(name: str) -> None:
    text = (LOCKS / f"{name}.lock").read_text()
    entries = re.split(r"\n(?=\S)", re.sub(r"(?m)^\s+#.*\n?", "", text).strip())

    loose = [entry for entry in entries if not re.match(r"[\w.-]+(\[[\w,-]+\])?==\S+(.|\n)*--hash=sha256:", entry)]

    assert len(entries) > 5
    assert loose == []
    assert re.findall(r"://|--(?:extra-)?index-url|--find-links|--trusted-host", text) == []


@pytest.mark.parametrize("name", list(PACKAGES))
def test_what_the_page_names_is_locked_in_that_environment(name: str) -> None:
    assert all(re.fullmatch(r"\d+(\.\d+)+", version) for version in versions(name).values())


def test_every_peer_has_a_program_and_an_environment() -> None:
    for program in PROGRAMS:
        assert (LOCKS / f"{program}.py").exists()
        assert program in PACKAGES


def test_a_killed_run_ends_in_a_cross_and_a_completed_one_does_not() -> None:
    killed = trial("pydantic-ai", 200, course=(Step(40, 9_000), Step(60, 18_000), Step(80, 27_000)), ended="killed")
    completed = trial("longhaul", 200, course=(Step(20, 7_000),) * 4)
    paper = Paper()

    for curve in curves([killed, completed]):
        draw(paper, curve.contender, curve.size, curve.ended, {"color": "red"})

    assert paper.crosses() == [([3], [27_000])]
    assert [style.get("label") for _, _, style in paper.lines] == ["pydantic-ai, killed at step 3", None, "longhaul"]


def test_a_curve_is_the_median_over_the_runs_with_the_most_steps() -> None:
    short = trial("floor", 1, course=(Step(1, 1),))
    runs = [
        trial("floor", 2, course=(Step(ms, size), Step(ms, 2 * size))) for ms, size in ((10, 100), (30, 500), (20, 300))
    ]

    [curve] = curves([short, *runs])

    assert (list(curve.size), list(curve.ms), curve.ended) == ([300, 600], [20, 20], "")


def test_a_step_lasts_from_the_end_of_one_tool_call_to_the_end_of_the_next() -> None:
    course = Course()
    story = [
        event("start", 1, 100),
        event("schedule", 5, 110, activity="model"),
        event("complete", 7, 120, of=5),
        event("schedule", 11, 125, activity="fetch"),
        event("complete", 13, 140, of=11),
        event("schedule", 17, 145, activity="agent__plain__toolset____agent____call_tool"),
        event("complete", 19, 190, of=17),
        read_within("fetch", 22, 195),
        read_within("prepare_reply", 23, 196),
        event("start", 1, 200),
        event("schedule", 11, 205, activity="model"),
        answered(13, 220, 11, b'{"reads": {"c1": {"kind": "returned"}}}'),
        event("schedule", 17, 225, activity="model"),
        answered(19, 230, 17, b"no json"),
    ]

    for each in story:
        course.add(each)

    assert [step.ms for step in course.steps] == [40, 50, 5, 25]
    assert course.actions == 2 + 5 + 1, "two runs, five activities, and what one task has read"
    assert [step.size for step in course.steps] == [
        sum(each.ByteSize() for each in story[:5]),
        sum(each.ByteSize() for each in story[5:7]),
        story[7].ByteSize(),
        sum(each.ByteSize() for each in story[8:12]),
    ]


def test_a_side_that_was_ended_is_asked_for_no_more_steps() -> None:
    before = [trial("openai-agents", 80, ended="killed"), trial("longhaul", 200)]

    assert gave_up("openai-agents", Size(Load(1_000, 5_000)), before)
    assert not gave_up("openai-agents", Size(Load(80, 5_000)), before)
    assert not gave_up("openai-agents", Size(Load(1_000, 900)), before)
    assert not gave_up("longhaul", Size(Load(1_000, 5_000)), before)
    assert gave_up("longhaul", Size(Load(1_000, 5_000)), [trial("longhaul", 1_000, ended="failed")])


def test_a_peer_is_asked_once_for_a_long_session_and_never_for_one_of_minutes() -> None:
    long = Size(Load(200, 5_000))

    assert not gave_up("pydantic-ai", long, [trial("pydantic-ai", 100, wall=80.0)])
    assert gave_up("pydantic-ai", long, [trial("pydantic-ai", 200, wall=80.0)])
    assert not gave_up("longhaul", long, [trial("longhaul", 200, wall=20.0)])
    assert gave_up("pydantic-ai", Size(Load(1_000, 5_000)), [trial("pydantic-ai", 200, wall=130.0)])


@pytest.mark.proves("X18")
def test_sides_are_compared_where_both_came_through() -> None:
    trials = [
        trial("longhaul", 100, wall=20.0, history_bytes=1_000),
        trial("pydantic-ai", 100, wall=90.0, history_bytes=41_000),
        trial("longhaul", 200, wall=20.0, history_bytes=2_000),
        trial("pydantic-ai", 200, ended="killed", wall=300.0, history_bytes=50_000_000),
    ]

    [finding] = findings(trials)

    assert finding.startswith("100 steps of 5,000 chars: a step of pydantic-ai takes 4.5 times as long as ours")
    assert "its history is 41.0 times as large" in finding
    assert [row[:3] for row in step_rows(trials)][-1] == ("pydantic-ai", "200", "200, killed")


def test_two_writers_of_the_page_leave_each_other_alone(tmp_path: Path) -> None:
    page = tmp_path / "benchmarks.md"
    page.write_text("# How fast\n\nBy hand.\n")

    for name, text in (("ours", "old figures"), ("peers", "their figures"), ("ours", "new figures")):
        page.write_text(with_section(page.read_text(), name, text))

    assert page.read_text() == (
        "# How fast\n\nBy hand.\n\n<!-- ours: begin -->\nnew figures\n<!-- ours: end -->\n\n"
        "<!-- peers: begin -->\ntheir figures\n<!-- peers: end -->\n"
    )


def test_a_page_with_half_a_mark_is_refused() -> None:
    with pytest.raises(ValueError, match="put both"):
        with_section("<!-- ours: begin -->\nfigures", "ours", "new")
