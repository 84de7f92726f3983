"""Links to where else a session can be seen: in Temporal's Web UI and among its traces, as an operator sets them."""

from collections.abc import Mapping
from string import Formatter
from typing import Annotated
from urllib.parse import quote, urlsplit

from pydantic import AfterValidator

NAMES: tuple[str, ...] = ("agent", "conversation", "namespace", "session", "user", "workflow_id")
"""What a template may name."""


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
    try:
        named = {name for _, name, _, _ in Formatter().parse(given) if name is not None}
        plain = given.format_map(dict.fromkeys(NAMES, "x"))
    except (ValueError, KeyError, IndexError, AttributeError):
        raise ValueError(f"it may name {', '.join(f'{{{name}}}' for name in NAMES)}, and {{{{ is a brace") from None
    if not named <= set(NAMES):
        raise ValueError(f"it may name {', '.join(f'{{{name}}}' for name in NAMES)}, and {{{{ is a brace")
    _address(plain)
    return given


WebAddress = Annotated[str, AfterValidator(_address)]
LinkTemplate = Annotated[str, AfterValidator(_template)]


def links(web_ui: str, trace: str, values: Mapping[str, str]) -> dict[str, str]:
    """Addresses by what is found there. Whatever a value says stays one value of its address."""
    safe = {name: quote(values[name], safe="") for name in NAMES}
    found = {}
    if web_ui:
        page = "/namespaces/{namespace}/workflows/{workflow_id}".format_map(safe)
        found["Temporal's Web UI"] = web_ui.rstrip("/") + page
    if trace:
        found["traces"] = trace.format_map(safe)
    return found
