"""Says how far long work is: nothing for its first seconds; then on a terminal one line that is painted over, elsewhere
a line now and then.

It needs the standard library alone, because it also runs before anything is installed.
"""

import os
import shutil
import sys
import time
from collections.abc import Callable

SILENT_SECONDS = 5.0
"""Work that is done by then says nothing."""
LINE_SECONDS = 10.0
"""Between two lines in a log. It grows to a third of what has passed, so that an hour has 19 lines."""
BAR_CELLS = 24

Clock = Callable[[], float]


class Progress:
    """Of one piece of work. Whoever does it reports each line that it prints, and ticks several times a second."""

    about = ""
    """Stands before a total that is an estimate."""

    def __init__(
        self,
        say: Callable[[str], None],
        work: str,
        *,
        total: int = 0,
        most_seconds: float = 0,
        painted: bool | None = None,
        clock: Clock = time.monotonic,
    ) -> None:
        """`say` writes a line of the log. `total`: how many pieces there are, where that is known. `most_seconds`: when
        the work is given up. `painted`: on a terminal, which is found out if None."""
        self.work = work
        self.done = 0
        self.total = total
        self._say = say
        self._most = most_seconds
        self._painted = _on_a_terminal() if painted is None else painted
        self._clock = clock
        self._start = clock()
        self._next_line = LINE_SECONDS
        self._is_shown = False

    def heard(self, line: str) -> None:
        """Take a line that the work has printed. This one counts none."""

    def tick(self) -> None:
        """Show how far the work is, if it is time to."""
        passed = self._clock() - self._start
        if self._painted and passed >= SILENT_SECONDS:
            columns = shutil.get_terminal_size().columns
            self._write(f"\r\x1b[K{self._sentence(passed, bar=True)[: columns - 1]}")
            self._is_shown = True
        elif not self._painted and passed >= self._next_line:
            self._next_line = passed + max(LINE_SECONDS, passed / 3)
            self._say(self._sentence(passed, bar=False))

    def end(self) -> None:
        """Take the painted line away; what is said afterwards begins at its place."""
        if self._is_shown:
            self._write("\r\x1b[K")
            self._is_shown = False

    def _sentence(self, passed: float, *, bar: bool) -> str:
        time_passed = f"{passed:.0f} s" if passed < 120 else f"{passed / 60:.0f} min"
        if self._most:
            time_passed += f" of at most {self._most:.0f} s"
        if not self.total:
            return f"{self.work}: {time_passed}"
        # More pieces than expected, or pieces in another order, must not show more than the whole.
        done = min(self.done, self.total)
        full = BAR_CELLS * done // self.total
        drawn = f" [{'#' * full}{'-' * (BAR_CELLS - full)}]" if bar else ""
        return f"{self.work}:{drawn} {done} of {self.about}{self.total}, {time_passed}"

    @staticmethod
    def _write(text: str) -> None:
        sys.stdout.write(text)
        sys.stdout.flush()


class LinesCounted(Progress):
    """Counts a line for a piece of the work if it is one word, as `go -v` prints each package that it has compiled.
    What Go has compiled before is not compiled again, so the total is an estimate."""

    about = "about "

    def heard(self, line: str) -> None:
        self.done += len(line.split()) == 1


def _on_a_terminal() -> bool:
    return sys.stdout.isatty() and os.environ.get("TERM") != "dumb" and "CI" not in os.environ
