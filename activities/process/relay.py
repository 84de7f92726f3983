"""The leash of a server that is spoken to through its input and output: what it starts never outlives the worker.

Run as `python -I -S relay.py PROGRAM [ARGUMENT…]`, stdlib only. Stdin is a pipe of which the worker holds the other
end. The program alone reads it: a word that went through here cost each call a turn of one more process. When it closes
(also by kill -9 of the worker), and when the program has ended, every process that descends from it is killed.
"""

# Each server waits for this program to start: see supervisor.py.
# ruff: noqa: PTH100, PTH120

import os
import select
import sys

if __package__:
    from longhaul.activities.process.supervisor import LEASH_FD, Supervisor
else:
    sys.path.append(os.path.dirname(os.path.abspath(__file__)))
    from supervisor import LEASH_FD, Supervisor  # type: ignore[import-not-found, no-redef]  # beside this file

LIFE_SECONDS = 864_000.0
"""Ten days: more than any session keeps one."""
LEAVING_SECONDS = 1.0
"""So long a server whose input has closed may take to end by itself."""
HANGS_UP = getattr(select, "POLLRDHUP", 0)
"""That nobody will write any more, also before all is read. A pipe says so unasked."""


class Relay(Supervisor):
    """One server under watch."""

    def __init__(self, command: list[str]) -> None:
        super().__init__(command, LIFE_SECONDS, os.open(os.devnull, os.O_WRONLY), "")

    def _start(self) -> int:
        pid = super()._start()
        os.dup2(self._report_fd, 1)  # with one more writer, the worker would hear of the program's end by and by
        return pid

    def _input(self) -> int:
        return LEASH_FD

    def _wait(self) -> str:
        poll = select.poll()
        poll.register(LEASH_FD, HANGS_UP)  # what is there to read is the program's
        poll.register(self._woken, select.POLLIN)
        while True:
            self._reap()
            if self._status is not None:
                return "exited"
            ready = {fd for fd, _ in poll.poll()}
            if LEASH_FD in ready or self._cut:
                self._gone_within(LEAVING_SECONDS)
                return "cut"
            os.read(self._woken, 4096)


if __name__ == "__main__":
    Relay(sys.argv[1:]).run()
