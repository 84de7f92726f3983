"""Longhaul as another build of it: `python -m tests.e2e.odd_build worker`, or a command (`… rollout check`).

With ODD_BUILD in the environment its workflow has lost a rule: when a reply has ended, nothing is written down.
Sessions that have written something down can't go on with that.
"""

import os
import sys

from longhaul import worker
from longhaul.agent.decision import decide
from longhaul.agent.decisions.continue_as_new import Load
from longhaul.agent.journal import Journal
from longhaul.agent.steps import Checkpoint, Idle, Step
from longhaul.starter.cli import main as command_line
from longhaul.workflows import session


def forgetful(journal: Journal, load: Load) -> Step:
    step = decide(journal, load)
    return Idle() if isinstance(step, Checkpoint) and journal.reply is None else step


if __name__ == "__main__":
    if os.environ.get("ODD_BUILD"):
        session.decide = forgetful  # type: ignore[attr-defined]
    if sys.argv[1:] == ["worker"]:
        os._exit(worker.main())
    command_line.main()
