"""Activities and providers that make spans, by the tracer provider of this process."""

from collections.abc import Mapping, Sequence

from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.id_generator import IdGenerator

from longhaul.activities.masking.masker import Masker
from longhaul.activities.models.key_places import KeyPlace
from longhaul.activities.telemetry.chat import WatchedProviders
from longhaul.activities.telemetry.content import Content
from longhaul.activities.telemetry.places import PinnedIds
from longhaul.activities.telemetry.watching import WatchedActivities
from longhaul.agent.values.spec.profiles import ModelProfile

SCOPE = "longhaul"


def providers(
    masker: Masker,
    places: Sequence[KeyPlace],
    counted_to: str,
    *,
    content: bool,
    profiles: Mapping[str, ModelProfile] | None = None,
) -> WatchedProviders:
    tracer, shown = _provider().get_tracer(SCOPE), Content(masker, wanted=content)
    return WatchedProviders(tracer, shown, places=places, counted_to=counted_to, profiles=profiles)


def activities(masker: Masker, *, content: bool) -> WatchedActivities:
    provider = _provider()
    return WatchedActivities(provider.get_tracer(SCOPE), provider, Content(masker, wanted=content))


def _provider() -> TracerProvider:
    """Whoever connects has set it up; its ids are to be ours where a reply's span is told."""
    provider = trace.get_tracer_provider()
    if not isinstance(provider, TracerProvider):
        raise TypeError("traces are wanted, and this process has no tracer provider: connect first")
    given: IdGenerator = provider.id_generator
    if not isinstance(given, PinnedIds):
        # The SDK says that this is what was given to it, and types it as what it takes by default.
        provider.id_generator = PinnedIds(given)  # type: ignore[assignment]
    return provider
