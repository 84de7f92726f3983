"""How a worker is watched. Loads OpenTelemetry when it is asked to, and nothing otherwise."""

from temporalio.worker import Interceptor

from activities.masking import Masker
from activities.models.providers import Providers


def watched_providers(masker: Masker, *, wanted: bool, content: bool) -> Providers:
    """What the worker calls models by."""
    if not wanted:
        return Providers()
    from activities.telemetry import spans  # noqa: PLC0415  see above

    return spans.providers(masker, content=content)


def watching(masker: Masker, *, wanted: bool, content: bool) -> list[Interceptor]:
    """What the worker runs its activities through."""
    if not wanted:
        return []
    from activities.telemetry import spans  # noqa: PLC0415  see above

    return [spans.activities(masker, content=content)]


def counting(*, wanted: bool) -> list[Interceptor]:
    """What counts for metrics; it has to be there once, on the worker."""
    if not wanted:
        return []
    from activities.telemetry.counting import CountedActivities  # noqa: PLC0415  see above

    return [CountedActivities()]
