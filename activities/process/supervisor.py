"""The leash of one command: a small program between the worker and a shell, which lets nothing outlive the call.

Run as `python -I -S supervisor.py TIMEOUT_SECONDS REPORT_FD LIMITS PROGRAM [ARGUMENT…]`, stdlib only. LIMITS are words
like `CPU=60`: a limit of `resource`, and its value; one that the machine sets lower already stays. `LEASH=5` alone: the
program gets the leash as its stdin, and five seconds to end by itself what it has started. Stdin is a pipe of
which the worker holds the other end: when that closes (also by kill -9 of the worker), when the time is up, and
when the program has ended, every process that descends from the call is killed: the process group, and what left
it by setsid or a double fork and so became a child of this subreaper.

To REPORT_FD goes one line `started PID`, and at the end one line `ended HOW STATUS KILLED` followed by what the
program wrote to its descriptor 113. HOW is `exited`, `timeout` or `cut`; STATUS the exit status, negative for a
signal; KILLED the number of processes that had to be ended.
"""

# Each command waits for this program to start, and most of that are imports: `signal` brings `enum`, and with ctypes,
# contextlib and pathlib it would take twice as long. os takes its booleans by position.
# ruff: noqa: PTH123, PTH208, FBT003, SIM105

import _signal as signal  # type: ignore[import-not-found]
import os
import select
import sys
import time

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
LEASH_FD = 0
NOTE_FD = 113
"""Where the program may leave a note: high and odd, so that scripts which use 3 to 9, or 200, don't meet it."""
NOTE_CAP_BYTES = 8192
SETTLING_SECONDS = 0.02
"""So long what is going anyway may take when the program has ended: bubblewrap's first process ends after it."""
TERM_GRACE_SECONDS = 0.15
KILL_PATIENCE_SECONDS = 1.0


class Supervisor:
    """One program under watch."""

    def __init__(self, command: list[str], timeout_seconds: float, report_fd: int, limits: str) -> None:
        self._command = command
        self._limits, _, grace = limits.partition("LEASH=")
        self._shares_leash = bool(grace)
        self._settling = float(grace or SETTLING_SECONDS)
        self._grace = float(grace or TERM_GRACE_SECONDS)
        self._deadline = time.monotonic() + timeout_seconds
        self._report_fd = report_fd
        self._status: int | None = None
        self._cut = False
        self._woken, self._wake = os.pipe()
        self._note, self._note_end = os.pipe()
        self._pid = 0

    def run(self) -> None:
        """Start the program, wait for the first reason to end, end everything, report."""
        os.set_inheritable(self._report_fd, False)
        prctl(PR_SET_CHILD_SUBREAPER, 1)
        os.set_blocking(self._wake, False)
        signal.set_wakeup_fd(self._wake, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        for name in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(name, self._be_cut)
        self._pid = self._start()
        os.close(self._note_end)
        self._report(f"started {self._pid}\n".encode())
        how = self._wait()
        os.set_blocking(self._note, False)
        try:
            note = os.read(self._note, NOTE_CAP_BYTES)
        except BlockingIOError:
            note = b""
        killed = self._end_everything()
        status = 0 if self._status is None else self._status
        self._report(f"ended {how} {status} {killed}\n".encode() + note)

    def _be_cut(self, *_: object) -> None:
        self._cut = True

    def _start(self) -> int:
        supervisor = os.getpid()
        pid = os.fork()
        if pid:
            return pid
        try:
            self._become_program(supervisor)
        except OSError as error:
            os.write(2, f"{self._command[0]}: {error.strerror}\n".encode())
        finally:
            os._exit(127)

    def _become_program(self, supervisor: int) -> None:
        os.setsid()
        prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != supervisor:
            os._exit(127)
        # Python ignores SIGPIPE, and an ignored signal stays ignored across exec: `yes | head` would not end.
        for name in (signal.SIGPIPE, signal.SIGXFSZ):
            signal.signal(name, signal.SIG_DFL)
        limit(self._limits)
        if not self._shares_leash:
            os.dup2(self._input(), 0)
        os.dup2(self._note_end, NOTE_FD)
        os.set_inheritable(NOTE_FD, True)
        # Whoever starts us may leave descriptors open on the way.
        os.closerange(3, NOTE_FD)
        os.closerange(NOTE_FD + 1, os.sysconf("SC_OPEN_MAX"))
        os.execv(self._command[0], self._command)  # noqa: S606  a list of arguments, as everywhere

    def _input(self) -> int:
        return os.open(os.devnull, os.O_RDONLY)

    def _wait(self) -> str:
        poll = select.poll()
        poll.register(LEASH_FD, select.POLLIN)
        poll.register(self._woken, select.POLLIN)
        while True:
            self._reap()
            if self._status is not None:
                return "exited"
            remaining = self._deadline - time.monotonic()
            if remaining <= 0:
                return "timeout"
            ready = {fd for fd, _ in poll.poll(remaining * 1000 + 1)}
            if LEASH_FD in ready or self._cut:
                return "cut"
            if self._woken in ready:
                os.read(self._woken, 4096)

    def _reap(self) -> bool:
        """Collect what has died. False when no child is left; then no descendant is left either."""
        try:
            while True:
                pid, status = os.waitpid(-1, os.WNOHANG)
                if pid == 0:
                    return True
                if pid == self._pid:
                    self._status = os.waitstatus_to_exitcode(status)
        except ChildProcessError:
            return False

    def _end_everything(self) -> int:
        """TERM, a short grace, then KILL until nothing is left. Returns how many processes were found alive."""
        if not self._reap() or (self._status is not None and self._gone_within(self._settling)):
            return 0
        # An engine passes it on, and takes the container away: processes of its own that do so are to be left alone.
        found = self._signal_all(signal.SIGTERM, only_program=self._shares_leash)
        if self._gone_within(self._grace):
            return found
        give_up = time.monotonic() + KILL_PATIENCE_SECONDS
        while time.monotonic() < give_up:
            # Stopped first, so that one which forks all the time does not outrun the killing.
            self._signal_all(signal.SIGSTOP)
            self._signal_all(signal.SIGKILL)
            if self._gone_within(0.02):
                break
        return found

    def _signal_all(self, number: int, *, only_program: bool = False) -> int:
        found = descendants(os.getpid())
        # Once the program is reaped its number may belong to another group.
        groups = [self._pid] if self._status is None else []
        for kill, pid in [(os.killpg, group) for group in groups] + [
            (os.kill, pid) for pid in found if not only_program
        ]:
            try:
                kill(pid, number)
            except OSError:
                pass
        return len(found)

    def _gone_within(self, seconds: float) -> bool:
        poll = select.poll()
        poll.register(self._woken, select.POLLIN)
        give_up = time.monotonic() + seconds
        while self._reap():
            remaining = give_up - time.monotonic()
            if remaining <= 0:
                return False
            if poll.poll(remaining * 1000 + 1):  # a child has died
                os.read(self._woken, 4096)
        return True

    def _report(self, line: bytes) -> None:
        try:
            os.write(self._report_fd, line)
        except OSError:
            pass


def prctl(option: int, value: int) -> None:
    """Linux's prctl; elsewhere nothing, and the process group alone is what gets killed."""
    if sys.platform == "linux":
        import _ctypes  # noqa: PLC0415  there is none on some machines that have no prctl either

        library = _ctypes.dlopen(None, 0)  # type: ignore[arg-type]  # None: what is loaded already
        _ctypes.call_function(_ctypes.dlsym(library, "prctl"), (option, value, 0, 0, 0))


def limit(words: str) -> None:
    """For this process and those that it starts, which can't lift them again without the machine's own privileges."""
    if not words:
        return
    import resource  # noqa: PLC0415  most calls have no limits, and each waits for this program to start

    for name, _, value in (word.partition("=") for word in words.split()):
        which, wanted = getattr(resource, f"RLIMIT_{name}"), int(value)
        lowest = min((one for one in resource.getrlimit(which) if one != resource.RLIM_INFINITY), default=wanted)
        resource.setrlimit(which, (min(wanted, lowest), min(wanted, lowest)))


def descendants(ancestor: int) -> list[int]:
    """Process ids below `ancestor`, zombies left out."""
    children: dict[int, list[tuple[int, bytes]]] = {}
    try:
        names = os.listdir("/proc")
    except OSError:
        names = []
    for name in names:
        if not name.isdigit():
            continue
        try:
            with open(f"/proc/{name}/stat", "rb") as file:
                stat = file.read()
        except OSError:
            continue
        # The second field is the program's own name in parentheses, and may hold any character.
        state, parent = stat[stat.rindex(b")") + 2 :].split(None, 2)[:2]
        children.setdefault(int(parent), []).append((int(name), state))
    found: list[int] = []
    waiting = [ancestor]
    while waiting:
        for pid, state in children.get(waiting.pop(), ()):
            waiting.append(pid)
            if state not in (b"Z", b"X"):
                found.append(pid)
    return found


if __name__ == "__main__":
    Supervisor(sys.argv[4:], float(sys.argv[1]), int(sys.argv[2]), sys.argv[3]).run()
