"""The leash of a server that is spoken to through its input and output: what it starts never outlives the worker.

Run as `python -I -S relay.py PROGRAM [ARGUMENT…]`, stdlib only. Stdin is a pipe of which the worker holds the other
end: what comes there goes on to the program. When it closes (also by kill -9 of the worker), and when the program has
ended, every process that descends from it is killed.
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
PIECE_BYTES = 1 << 16


class Relay(Supervisor):
    """One server under watch."""

    def __init__(self, command: list[str]) -> None:
        super().__init__(command, LIFE_SECONDS, os.open(os.devnull, os.O_WRONLY), "")
        self._read_end, self._write_end = os.pipe()
        self._waiting = b""

    def _input(self) -> int:
        return self._read_end

    def _wait(self) -> str:
        os.close(self._read_end)
        os.set_blocking(self._write_end, False)
        while True:
            self._reap()
            if self._status is not None:
                return "exited"
            if self._cut or not self._carry():
                break
        os.close(self._write_end)
        self._gone_within(LEAVING_SECONDS)
        return "cut"

    def _carry(self) -> bool:
        """Move what there is to move; False when nothing more will come. The end of the worker's side is seen also
        while the program reads nothing: its input is never waited for alone."""
        poll = select.poll()
        poll.register(LEASH_FD, 0 if self._waiting else select.POLLIN)
        poll.register(self._woken, select.POLLIN)
        if self._waiting:
            poll.register(self._write_end, select.POLLOUT)
        ready = dict(poll.poll())
        if self._woken in ready:
            os.read(self._woken, 4096)
        if self._write_end in ready:
            return self._write()
        events = ready.get(LEASH_FD, 0)
        if events & select.POLLIN:
            self._waiting = os.read(LEASH_FD, PIECE_BYTES)
            return bool(self._waiting)
        return not events

    def _write(self) -> bool:
        try:
            self._waiting = self._waiting[os.write(self._write_end, self._waiting) :]
        except BlockingIOError:
            pass
        except OSError:
            return False  # it has closed its input
        return True


if __name__ == "__main__":
    Relay(sys.argv[1:]).run()
