"""Tells by the headers Host and Origin under which name a request comes, and from whose page."""

import re

HIGHEST_PORT = 65_535
_HOST = re.compile(r"(\[[^\[\]]+\]|[^:\[\]]+)(?::([0-9]{1,5}))?")


def host_name(header: str) -> str | None:
    """Without its port, in small letters; None for what is not a name with or without a port, and nothing else."""
    found = _HOST.fullmatch(header.lower())
    return found[1] if found and 0 < int(found[2] or 1) <= HIGHEST_PORT else None


def is_own(origin: str, host: str) -> bool:
    """Whether a page of this server asks, as the header `Host` names it; TLS is the proxy's business."""
    return origin.lower() in (f"http://{host.lower()}", f"https://{host.lower()}")
