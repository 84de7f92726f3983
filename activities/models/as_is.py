"""Arguments of a request that go past the SDK: it would look at each part of each message for something to transform.

There is nothing: they are JSON already. Of a request with a thousand messages it took nineteen parts of twenty.
"""

from collections.abc import Mapping
from typing import Any


def as_is(arguments: Mapping[str, Any], name: str) -> dict[str, Any]:
    """The SDK's arguments with the list `name` in the body beside what the SDK makes. It still asks for one, so that
    an empty one stands in its place, which the body's covers."""
    body = {**arguments.get("extra_body", {}), name: arguments[name]}
    return {**arguments, name: [], "extra_body": body}
