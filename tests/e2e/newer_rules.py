"""Longhaul as a later build of it, with rules of number 2: `python -m tests.e2e.newer_rules worker`, or a command.

By number 1 the calls of a turn that may run together start together; by number 2 each starts when the one before it
has ended. A session whose reply was started under number 1 goes on by 1, as CONTRIBUTING.md asks for. With UNGUARDED in
the environment the rule does not ask for the session's number, and breaks such a session.
"""

import os
import sys
from dataclasses import replace

from longhaul import worker
from longhaul.activities import prepare_reply
from longhaul.agent.decision import decide
from longhaul.agent.decisions.continue_as_new import Load
from longhaul.agent.journal import Journal
from longhaul.agent.steps import Act, Park, Step
from longhaul.starter.cli import main as command_line
from longhaul.workflows import session

NUMBER = 2


def one_by_one(journal: Journal, load: Load) -> Step:
    step = decide(journal, load)
    if not isinstance(step, Act) or not (journal.state.behaviour >= NUMBER or os.environ.get("UNGUARDED")):
        return step
    return Park("running calls") if load.running else replace(step, call_ids=step.call_ids[:1])


if __name__ == "__main__":
    session.decide = one_by_one  # type: ignore[attr-defined]
    prepare_reply.BEHAVIOUR = NUMBER  # type: ignore[attr-defined]
    if sys.argv[1:] == ["worker"]:
        os._exit(worker.main())
    command_line.main()
