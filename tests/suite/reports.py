"""A plugin: reports of tests that run in processes of their own arrive, whatever odd text was logged meanwhile."""

from collections.abc import Generator
from typing import Any

import pytest


@pytest.hookimpl(wrapper=True)
def pytest_report_to_serializable() -> Generator[None, dict[str, Any] | None, dict[str, Any] | None]:
    """pytest-xdist sends text as UTF-8 and ends the whole run at a lone surrogate, which hostile tools log."""
    told: dict[str, Any] | None = printable((yield))
    return told


def printable(value: Any) -> Any:
    """The same with each lone surrogate as its escape."""
    match value:
        case str():
            return value.encode("utf-8", "backslashreplace").decode("utf-8")
        case dict():
            return {printable(key): printable(held) for key, held in value.items()}
        case list() | tuple():
            return type(value)(map(printable, value))
        case _:
            return value
