"""A plugin: reports of tests that run in processes of their own are made and arrive, whatever else is parsed or logged
meanwhile; and why pytest itself broke off is written down, for it stands far above the end of a log."""

import ast
import functools
import gc
import sys
from collections.abc import Generator
from typing import Any

import pytest

CAUSE = "broke_off.txt"
"""In pytest's cache: the errors of its own, of each of its processes."""


class Causes:
    """Writes down what broke pytest off."""

    def __init__(self, config: pytest.Config) -> None:
        self.config = config

    def pytest_internalerror(self, excrepr: object, excinfo: pytest.ExceptionInfo[BaseException]) -> None:
        write_cause(self.config, f"{excinfo.typename}: {excrepr}")


def write_cause(config: pytest.Config, cause: str) -> None:
    """Below the folder that pytest runs in."""
    cache = config.rootpath / ".pytest_cache"
    cache.mkdir(exist_ok=True)
    with (cache / CAUSE).open("a", encoding="utf-8", errors="backslashreplace") as written:
        written.write(f"{cause}\n")


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(Causes(config))


# pytest parses what it reports and each module that it rewrites. Before 3.11.8 and 3.12.2 Python counts for all at once
# how deep a tree is: a collection in the midst, which calls back and lets other threads parse, breaks pytest off with
# a SystemError (github.com/python/cpython/issues/106905).
if sys.version_info < (3, 12, 2):
    _parse = ast.parse

    @functools.wraps(_parse)
    def _parse_without_collecting(*given: Any, **named: Any) -> Any:
        collects = gc.isenabled()
        gc.disable()
        try:
            return _parse(*given, **named)
        finally:
            if collects:
                gc.enable()

    ast.parse = _parse_without_collecting


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
