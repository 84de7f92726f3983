"""Stops a worker's process: the first signal lets what runs come to its end, the second ends it at once."""

import asyncio
import os
import signal

from longhaul.starter.hosting.saying import say


def asked_to_stop(seconds: float) -> asyncio.Event:
    """Set by the first SIGINT or SIGTERM, which is answered by a line on stderr. `seconds`: what running calls get."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, _take, number, stop, seconds)
    return stop


def _take(number: signal.Signals, stop: asyncio.Event, seconds: float) -> None:
    if stop.is_set():
        say("leaving at once; what still runs is repeated elsewhere, or told to be of unknown outcome")
        # Commands die with this process: their supervisors hold a pipe from it.
        os._exit(128 + number)
    say(f"stopping: calls that run get {seconds:g} s to end; a second signal leaves at once")
    stop.set()
