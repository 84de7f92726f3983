"""Reads from settings and server how closely calls are watched, and how seldom a client asks that hears nothing."""

from temporalio.client import Client

from longhaul.agent.values.spec.workspace import CHEAP_SECONDS, FAST_SECONDS
from longhaul.starter.settings import Settings

FAST_ASK_SECONDS = 15.0
CHEAP_ASK_SECONDS = 90.0
"""Between queries of one who waits, each of which costs a worker's time, and is billed. Nearly all ends are told by the
live stream, or seen in what the server knows."""


def liveness_of(settings: Settings, client: Client) -> float:
    """Seconds. What nobody has set is cheap on a server that is somebody else's, for there it is billed."""
    match settings.liveness:
        case "fast":
            return FAST_SECONDS
        case "cheap":
            return CHEAP_SECONDS
        case "":
            return CHEAP_SECONDS if _is_hired(client) else FAST_SECONDS
        case seconds:
            return seconds


def ask_seconds(settings: Settings, client: Client) -> float:
    """The least between queries of a client that waits and hears nothing."""
    return CHEAP_ASK_SECONDS if liveness_of(settings, client) >= CHEAP_SECONDS else FAST_ASK_SECONDS


def _is_hired(client: Client) -> bool:
    """Nobody has an API key, or a way in through TLS, to a server that they run beside themselves."""
    config = client.service_client.config
    return bool(config.tls) or bool(config.api_key)
