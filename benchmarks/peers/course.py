"""How a session went, step by step, read from its history: any framework's that runs tools as activities."""

from dataclasses import dataclass, field

from temporalio.api.enums.v1 import EventType
from temporalio.api.history.v1 import HistoryEvent


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
    complaint: str = ""
    """Why the last failed workflow task failed."""
    _tools: set[int] = field(default_factory=set[int])
    _since: float = 0.0
    _size: int = 0

    def add(self, event: HistoryEvent) -> None:
        at = event.event_time.ToMicroseconds() / 1000
        self._since = self._since or at
        self._size += event.ByteSize()
        match event.event_type:
            case EventType.EVENT_TYPE_WORKFLOW_EXECUTION_STARTED:
                self._tools.clear()  # Event ids start at 1 again in each run.
            case EventType.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED:
                if _is_tool(event.activity_task_scheduled_event_attributes.activity_type.name):
                    self._tools.add(event.event_id)
            case EventType.EVENT_TYPE_ACTIVITY_TASK_COMPLETED:
                if event.activity_task_completed_event_attributes.scheduled_event_id in self._tools:
                    self.steps.append(Step(at - self._since, self._size))
                    self._since, self._size = at, 0
            case EventType.EVENT_TYPE_WORKFLOW_TASK_FAILED:
                self.complaint = event.workflow_task_failed_event_attributes.failure.message
            case _:
                pass


def _is_tool(activity: str) -> bool:
    """The tool is `fetch` everywhere; Pydantic AI runs all tools of a toolset under one name."""
    return activity == "fetch" or activity.endswith("call_tool")
