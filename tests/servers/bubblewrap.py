"""bubblewrap for the tests: found, or installed where that is ours to do."""

from longhaul.activities.process.sandbox import bwrap_problem
from longhaul.starter.dev_server.temporal_cli import Say
from tests.servers.debian import find_program
from tests.servers.local import ServerUnavailable


def find_bubblewrap(say: Say) -> str:
    """Return the path of `bwrap`, installing the distribution's package when we are root. Raises ServerUnavailable."""
    return find_program(["bwrap"], "bubblewrap", say)


def find_working_bubblewrap(say: Say) -> str:
    """As `find_bubblewrap`; raises ServerUnavailable also where the kernel allows no namespaces."""
    path = find_bubblewrap(say)
    bwrap_problem.cache_clear()
    if problem := bwrap_problem():
        raise ServerUnavailable(problem)
    return path
