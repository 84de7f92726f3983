"""Writes what a worker says about itself to stderr, in the form that its log has."""

import logging
import sys

from longhaul.starter.telemetry.switches import logs_wanted

log = logging.getLogger("longhaul.worker")


def say(sentence: str) -> None:
    """A sentence of the code's own: it may go on over several lines, which are one in a structured log."""
    if logs_wanted().structured:
        log.warning(" ".join(sentence.split()))
    else:
        print(f"longhaul worker: {sentence}", file=sys.stderr, flush=True)
