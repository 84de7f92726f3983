"""Metrics that only a session knows: how long its calls have waited. The SDK's meter counts nothing at a replay."""

from temporalio import workflow

from longhaul.agent.entries import AnyEntry
from longhaul.agent.fold.ledger import Ledger
from longhaul.agent.views.session_views import waits_ended

NAME = "longhaul_wait_seconds"


def tell_waits(ledger: Ledger, entry: AnyEntry, now: int) -> None:
    """Before the entry is written: then the calls wait still. Where nobody measures, nothing is recorded."""
    for wait in waits_ended(ledger, entry, now):
        seconds = workflow.metric_meter().create_histogram_float(NAME, unit="s")
        seconds.record(wait.seconds, {"tool": wait.tool, "waits_for": wait.waits_for, "outcome": wait.outcome})
