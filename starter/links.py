"""Links to where else a session can be seen: in Temporal's Web UI and among its traces, as an operator sets them."""

import re
from collections.abc import Mapping
from string import Formatter
from typing import Annotated
from urllib.parse import quote, urlsplit

from pydantic import AfterValidator

NAMES: tuple[str, ...] = ("agent", "conversation", "namespace", "session", "user", "workflow_id")
"""What a template may name."""
_HOST = re.compile(r"https?://[^/?#\\{}]+[/?#]", re.IGNORECASE)
_DOTS = re.compile(r"[/\\](\.|%2e){1,2}(?=[/\\]|$)", re.IGNORECASE)
"""A part of a path that browsers resolve, however it is written."""


def _address(given: str) -> str:
    """As it was given, or ValueError for what is no page of the web: it stands in a link that people click."""
    try:
        parts = urlsplit(given)
        is_address = parts.scheme in ("http", "https") and bool(parts.hostname)
    except ValueError:
        is_address = False
    if given and not (is_address and given.isprintable() and " " not in given):
        raise ValueError("give an address as in https://HOST/PATH")
    return given


def _template(given: str) -> str:
    may = f"it may name {', '.join(f'{{{name}}}' for name in NAMES)}, each without ! and :, and {{{{ is a brace"
    try:
        parts = list(Formatter().parse(given))
    except ValueError:
        raise ValueError(may) from None
    # Before anything is filled in: a width is taken at its word, and may ask for more memory than there is.
    if any(name is not None and (name not in NAMES or form or how) for _, name, form, how in parts):
        raise ValueError(may)
    plain = given.format_map(dict.fromkeys(NAMES, "x"))
    if any(name is not None for _, name, _, _ in parts) and not _HOST.match(given):
        raise ValueError("give an address as in https://HOST/PATH, and name what differs behind the HOST alone")
    _address(plain)
    if _DOTS.search(urlsplit(plain).path):
        raise ValueError("leave . and .. out of its path: browsers go elsewhere by them")
    return given


WebAddress = Annotated[str, AfterValidator(_address)]
LinkTemplate = Annotated[str, AfterValidator(_template)]


def links(web_ui: str, trace: str, values: Mapping[str, str]) -> dict[str, str]:
    """Addresses by what is found there. Whatever a value says stays one value of its address: a path can't say `.` and
    `..`, for browsers resolve them, also percent-encoded, so there is no link then."""
    safe = {name: quote(values[name], safe="") for name in NAMES}
    found = {}
    if web_ui:
        page = "/namespaces/{namespace}/workflows/{workflow_id}".format_map(safe)
        found["Temporal's Web UI"] = web_ui.rstrip("/") + page
    if trace:
        address = trace.format_map(safe)
        if not _DOTS.search(urlsplit(address).path):
            found["traces"] = address
    return found
