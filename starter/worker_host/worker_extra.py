"""Looks whether the parts of a worker are installed, and loads none of them: an import would end in a traceback."""

import sys
from importlib.util import find_spec

from longhaul.agent.plain.errors import EXTRAS, MissingExtra, missing

_NOT_HERE = {"uvloop"} if sys.platform == "win32" else set[str]()
"""There is none of it for this system, and none is needed."""


def check_installed() -> None:
    """Raises MissingExtra where a worker could not be imported."""
    for module in EXTRAS["worker"]:
        if module not in _NOT_HERE and find_spec(module) is None:
            raise missing(ModuleNotFoundError(name=module))


def leave_without() -> None:
    """End the process with the sentence and exit code 1 where a worker could not be imported."""
    try:
        check_installed()
    except MissingExtra as error:
        print(f"longhaul worker: {error}", file=sys.stderr)
        raise SystemExit(1) from None
