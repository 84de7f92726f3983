"""The reviewer's way to the forge, which has the pull requests: its address is in FORGE_URL."""

import os
from urllib.request import Request, urlopen

from longhaul import tool


def asked(path: str, body: str | None = None) -> str:
    address = os.environ.get("FORGE_URL", "http://127.0.0.1:8089")
    with urlopen(Request(address + path, None if body is None else body.encode()), timeout=10) as answer:  # noqa: S310
        return str(answer.read().decode())


@tool(effect="read", read_only=True, untrusted=True)
def diff_of(pull_request: int) -> str:
    """Read what a pull request changes."""
    return asked(f"/pulls/{pull_request}")


@tool
def comment(pull_request: int, text: str) -> str:
    """Write a comment below a pull request."""
    return asked(f"/pulls/{pull_request}", text)
