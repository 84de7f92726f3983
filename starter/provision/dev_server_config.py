"""Settings for a development server, so that it does not throttle itself.

A stock one spends about 100 ms on each activity and rounds every timer up to a second. The same values stand
in deploy/dynamicconfig.yaml for docker-compose.
"""

from collections.abc import Mapping
from types import MappingProxyType

DYNAMIC_CONFIG: Mapping[str, int | bool | str] = MappingProxyType(
    {
        "frontend.rps": 100_000,
        "frontend.namespaceRPS": 100_000,
        "frontend.namespaceRPS.visibility": 10_000,
        "frontend.namespaceCount": 100_000,
        "matching.rps": 100_000,
        "history.rps": 100_000,
        # The two poll rates are what costs a stock server its 40 to 50 ms a task.
        "history.transferProcessorMaxPollRPS": 100_000,
        "history.timerProcessorMaxPollRPS": 100_000,
        # Search attributes: a session that begins to wait shows up in the inbox at once.
        "history.visibilityProcessorMaxPollRPS": 100_000,
        # Stock 1 s: every timer and retry below a second would last a whole one.
        "history.timerProcessorMaxTimeShift": "10ms",
        # Stock 1 s: a session that continues as new, or restarts under its id, would wait for it.
        "history.workflowIdReuseMinimalInterval": "0s",
        # Stock 30 s: the history of a session that has just ended is not deleted before.
        "history.transferProcessorUpdateAckInterval": "1s",
        "history.visibilityProcessorUpdateAckInterval": "1s",
        "matching.numTaskqueueReadPartitions": 1,
        "matching.numTaskqueueWritePartitions": 1,
        # Lets the worker that completes a workflow task begin the activity without another poll.
        "system.enableActivityEagerExecution": True,
        # Stock 10. Each update above it is refused, and with it the server throws away what it knows of the others of
        # the session: their callers and the worker have to begin again.
        "history.maxInFlightUpdates": 0,
    }
)

SQLITE_PRAGMAS: Mapping[str, str] = MappingProxyType(
    # synchronous=1 in WAL mode loses nothing to `kill -9`; only a power cut may take the last moments.
    {"journal_mode": "WAL", "synchronous": "1"}
)
