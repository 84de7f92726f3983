"""The event loop of a worker: uvloop, where it exists; a worker costs a tenth less processor time on it."""

import asyncio
import sys


def new() -> asyncio.AbstractEventLoop:
    """To be given to whoever runs one: `asyncio.Runner(loop_factory=new)`."""
    if sys.platform == "win32":
        return asyncio.new_event_loop()
    import uvloop  # noqa: PLC0415  there is none for Windows

    return uvloop.new_event_loop()
