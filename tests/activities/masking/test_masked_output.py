"""What a worker's process prints holds no secret, however it is written."""

import logging
import sys
import threading
import traceback
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path

from longhaul.activities.masker import Masker
from longhaul.activities.worker_output import masked_output

KEY = "gate-9c41f2-open/sesame+7"
MASKER = Masker({"GATE_KEY": KEY})


@contextmanager
def printing(masker: Masker = MASKER) -> Iterator[StringIO]:
    """Both outputs of this process, masked; what they wrote."""
    out = StringIO()
    with redirect_stdout(out), redirect_stderr(out), masked_output(masker):
        yield out


def test_a_secret_is_cut_out_wherever_one_write_ends() -> None:
    with printing() as printed:
        print("the key:", KEY[:9], end="")
        print(KEY[9:], "is", "kept")
        sys.stderr.write(f"GATE_KEY={KEY}")

    assert printed.getvalue() == "the key: [secret GATE_KEY] is kept\nGATE_KEY=[secret GATE_KEY]"


def test_what_may_begin_a_secret_comes_at_the_end() -> None:
    with printing() as printed:
        print("past the garden gate", end="")
        sys.stdout.flush()
        assert printed.getvalue().startswith("past the garden ")

    assert printed.getvalue() == "past the garden gate"


def test_warnings_tracebacks_log_errors_and_bytes_are_masked() -> None:
    with printing() as printed:
        sys.stderr.write(warnings.formatwarning(UserWarning(KEY), UserWarning, "gate.py", 7))
        traceback.print_exception(RuntimeError(KEY))
        handler = logging.StreamHandler()
        handler.handle(logging.makeLogRecord({"msg": "%d", "args": (KEY,), "levelno": 40}))
        sys.stdout.buffer.write(KEY.encode())
        sys.stdout.buffer.flush()

    assert not MASKER.found(printed.getvalue())
    assert printed.getvalue().count("[secret GATE_KEY]") >= 4


def test_threads_that_print_at_once_lose_nothing() -> None:
    def chatter() -> None:
        for _ in range(200):
            print("a" * 20)

    threads = [threading.Thread(target=chatter) for _ in range(4)]
    with printing() as printed:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    assert printed.getvalue().count("a") == 4 * 200 * 20


def test_without_secrets_the_streams_are_left_alone() -> None:
    with printing(Masker({})) as printed:
        assert sys.stdout is printed


def test_it_stands_for_the_same_file(tmp_path: Path) -> None:
    with (tmp_path / "out").open("w", encoding="utf-8") as file, redirect_stdout(file), masked_output(MASKER):
        assert (sys.stdout.fileno(), sys.stdout.encoding, sys.stdout.isatty()) == (file.fileno(), "utf-8", False)
        print("opened with", KEY)

    assert (tmp_path / "out").read_text() == "opened with [secret GATE_KEY]\n"
