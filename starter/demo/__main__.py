"""`python -m longhaul.starter.demo [--keep]`: a whole job in seconds, offline, with three processes killed on the way.

Exit code 0 only when the project's tests are green at the end and the edit was made exactly once.
"""

import argparse
import asyncio
import os
import signal
import sys
import tempfile
from pathlib import Path

from longhaul.agent.plain.errors import LonghaulError
from longhaul.starter.cli.terminal.screen import Screen
from longhaul.starter.demo.play import Declined, Narrator, Play
from longhaul.starter.demo.stage import Stage, StageFailed

AGAIN = f"{os.path.relpath(sys.executable)} -m longhaul.starter.demo --keep"


async def show(narrator: Narrator, *, keep: bool) -> int:
    """Set the stage, perform, clear away. Returns the exit code."""
    with tempfile.TemporaryDirectory(prefix="longhaul-demo-", ignore_cleanup_errors=True) as folder:
        async with Stage.set(Path(folder), narrator.remark) as stage:
            wrong = await Play(stage, Path(folder), narrator).perform()
            for complaint in wrong:
                complain(complaint)
            if keep:
                stop = asyncio.Event()
                for number in (signal.SIGINT, signal.SIGTERM):
                    asyncio.get_running_loop().add_signal_handler(number, stop.set)
                narrator.step(f"The Web UI is at {stage.server.ui_url}; Ctrl-C stops it.")
                await stop.wait()
            else:
                narrator.step("Server and worker are stopped now. To look around in Temporal's Web UI:")
                narrator.remark(AGAIN)
    return 1 if wrong else 0


def complain(sentence: str) -> None:
    print(f"longhaul demo: {sentence}", file=sys.stderr)


def main() -> int:
    options = argparse.ArgumentParser(
        prog="python -m longhaul.starter.demo", description="A whole job, offline, in seconds."
    )
    options.add_argument("--keep", action="store_true", help="leave the server and its Web UI running until Ctrl-C")
    keep: bool = options.parse_args().keep
    try:
        return asyncio.run(show(Narrator(Screen()), keep=keep))
    except TimeoutError:
        complain("the agent did not get on within a minute; this machine may be too busy, so try it again")
    except (Declined, StageFailed, LonghaulError) as error:
        complain(str(error))
    except KeyboardInterrupt:
        return 130
    return 1


if __name__ == "__main__":
    code = main()
    sys.stdout.flush()
    sys.stderr.flush()
    # The SDK's runtime threads abort a normal interpreter exit now and then, after all work is done.
    os._exit(code)
