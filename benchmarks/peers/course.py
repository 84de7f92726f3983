"""How a session went, step by step, read from its history: any framework's that runs tools as activities."""

import json
from dataclasses import dataclass, field

from temporalio.api.enums.v1 import EventType
from temporalio.api.history.v1 import HistoryEvent

ACTIONS = frozenset(
    {
        EventType.EVENT_TYPE_WORKFLOW_EXECUTION_STARTED,
        EventType.EVENT_TYPE_WORKFLOW_EXECUTION_SIGNALED,
        EventType.EVENT_TYPE_WORKFLOW_EXECUTION_UPDATE_ACCEPTED,
        EventType.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED,
        EventType.EVENT_TYPE_TIMER_STARTED,
        EventType.EVENT_TYPE_UPSERT_WORKFLOW_SEARCH_ATTRIBUTES,
        EventType.EVENT_TYPE_START_CHILD_WORKFLOW_EXECUTION_INITIATED,
    }
)


@dataclass(frozen=True, slots=True)
class Step:
    """From the end of the last tool call (at first: from the start) to the end of this one."""

    ms: float
    size: int
    """Bytes that the history grew by."""


@dataclass(slots=True)
class Course:
    """Takes the events of all runs in their order; whatever follows the last tool call belongs to no step."""

    steps: list[Step] = field(default_factory=list[Step])
    actions: int = 0
    """Events that are billed actions on Temporal Cloud; heartbeats and queries leave none."""
    complaint: str = ""
    """Why the last failed workflow task failed."""
    _reading: int = 0
    """The last task that read by itself: its local activities are one action together."""
    _tools: set[int] = field(default_factory=set[int])
    _since: float = 0.0
    _size: int = 0

    def add(self, event: HistoryEvent) -> None:
        at = event.event_time.ToMicroseconds() / 1000
        self._since = self._since or at
        self._size += event.ByteSize()
        self.actions += event.event_type in ACTIONS
        match event.event_type:
            case EventType.EVENT_TYPE_WORKFLOW_EXECUTION_STARTED:
                self._reading = 0  # Event ids start at 1 again in each run.
                self._tools.clear()
            case EventType.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED:
                if _is_tool(event.activity_task_scheduled_event_attributes.activity_type.name):
                    self._tools.add(event.event_id)
            case EventType.EVENT_TYPE_ACTIVITY_TASK_COMPLETED:
                if event.activity_task_completed_event_attributes.scheduled_event_id in self._tools or _reads(event):
                    self._end_step(at)
            case EventType.EVENT_TYPE_MARKER_RECORDED:
                task = event.marker_recorded_event_attributes.workflow_task_completed_event_id
                self.actions, self._reading = self.actions + (task != self._reading), task
                if _is_tool(_read_within(event)):
                    self._end_step(at)
            case EventType.EVENT_TYPE_WORKFLOW_TASK_FAILED:
                self.complaint = event.workflow_task_failed_event_attributes.failure.message
            case _:
                pass

    def _end_step(self, at: float) -> None:
        self.steps.append(Step(at - self._since, self._size))
        self._since, self._size = at, 0


def _reads(event: HistoryEvent) -> bool:
    """Whether a model's answer has brought along what its call of the tool reads."""
    told = event.activity_task_completed_event_attributes.result.payloads
    try:
        answer = json.loads(told[0].data) if told else None
    except ValueError:
        return False
    return isinstance(answer, dict) and bool(answer.get("reads"))


def _read_within(event: HistoryEvent) -> str:
    """The activity that ran within the workflow's own task; empty for another kind of marker."""
    told = event.marker_recorded_event_attributes
    if told.marker_name != "core_local_activity":
        return ""
    return str(json.loads(told.details["data"].payloads[0].data)["activity_type"])


def _is_tool(activity: str) -> bool:
    """The tool is `fetch` everywhere; Pydantic AI runs all tools of a toolset under one name."""
    return activity == "fetch" or activity.endswith("call_tool")
