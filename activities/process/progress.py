"""A tool tells its progress while it works: it is shown to whoever follows the session, and kept nowhere."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

Tell = Callable[[str], None]

_tell: ContextVar[Tell | None] = ContextVar("longhaul_progress", default=None)


def progress(text: str) -> None:
    """Show a piece of text, with its line ends, to whoever follows the call that is running.

    From any tool, also a plain function in its thread. Never waits, never raises; the model does not see it, and what
    the tool returns takes its place. Outside of a call it does nothing.
    """
    tell = _tell.get()
    if tell is not None and text:
        tell(text)


@contextmanager
def told_to(tell: Tell) -> Iterator[None]:
    """Hand over what is told inside, in this task and in what it starts; nothing more afterwards: a thread that runs on
    would else show pieces of a call that is over."""
    over = False

    def tell_until_over(text: str) -> None:
        if not over:
            tell(text)

    token = _tell.set(tell_until_over)
    try:
        yield
    finally:
        over = True
        _tell.reset(token)
