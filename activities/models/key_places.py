"""Decides which of the worker's keys may go to which address. Whoever starts a session names both, and must not choose
the pair: it is in the operator's list, or the provider's own."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

from longhaul.agent.plain.errors import BadSetup
from longhaul.agent.values.spec.profiles import IDENTITY

SETTING = "LONGHAUL_MODEL_KEYS"
NO_KEY = "none"
"""Stands for a key in the list, and is what a server of one's own is sent: SDKs insist on something."""
NO_VARIABLES = (NO_KEY, IDENTITY)
"""What may stand in the place of a variable's name."""

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_PORTS = {"https": 443, "http": 80}


class BadKeyPlaces(BadSetup):
    """The operator's list can't be read; the sentence says which part, and what to write."""


@dataclass(frozen=True, slots=True)
class KeyPlace:
    key_env: str
    """Name of the worker's variable, `none` or `identity`."""
    base_url: str

    def covers(self, key_env: str, base_url: str) -> bool:
        """Whether that key may go to that address: this one, or one below it on the same server."""
        return key_env == self.key_env and is_within(base_url, self.base_url)


def read_key_places(setting: str) -> tuple[KeyPlace, ...]:
    """From `TEAM_KEY=https://models.example/v1, none=http://127.0.0.1:8000/v1`. Raises BadKeyPlaces."""
    return tuple(_places(setting))


def _places(setting: str) -> Iterator[KeyPlace]:
    for part in filter(None, (part.strip() for part in setting.split(","))):
        name, _, address = (half.strip() for half in part.partition("="))
        if not _NAME.fullmatch(name) or _server(address) is None:
            raise BadKeyPlaces(
                f"{SETTING}: {part!r} is no pair of a variable and an address; write NAME=https://HOST/PATH, or "
                f"{NO_KEY}=http://HOST:PORT/PATH for a server that wants no key"
            )
        yield KeyPlace(name, address)


def is_within(address: str, place: str) -> bool:
    """Whether an address is that place or lies below it: same scheme, host and port, and a path that begins alike."""
    server = _server(address)
    if server is None or server != _server(place):
        return False
    path, root = (urlsplit(url).path.rstrip("/") for url in (address, place))
    return path == root or path.startswith(f"{root}/")


def is_among(key_env: str, base_url: str, places: Sequence[KeyPlace]) -> bool:
    return any(place.covers(key_env, base_url) for place in places)


def _server(address: str) -> tuple[str, str, int] | None:
    """Scheme, host and port; None for what is no plain address: names, queries and dots could lead elsewhere."""
    if not address.isascii() or not address.isprintable() or re.search(r"[\s\\@?#%]|/\.{1,2}(/|$)", address):
        return None
    try:
        parts = urlsplit(address)
        port = parts.port
    except ValueError:
        return None
    if parts.scheme not in _PORTS or not parts.hostname:
        return None
    return parts.scheme, parts.hostname, port or _PORTS[parts.scheme]
