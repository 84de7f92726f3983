"""Every error that Longhaul raises stands in one tree, drawn in docs/people/errors.md, or is known to stay inside."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

DRAWN = Path(__file__).parents[2] / "docs" / "people" / "errors.md"

INSIDE = {
    "RefusedRequest": "becomes the answer to a request of the Web UI that may not be asked",
    "LeasesUnavailable": "becomes a line of the worker's log",
    "NoVectors": "makes a search go by words alone",
    "NoWords": "becomes the line about a file that was left out",
    "NotRegular": "is asked about, as a file that can't be read",
    "AnswerTooLong": "becomes a result that the model reads",
    "TooManySteps": "becomes a result that the model reads, or a summary that can't be used",
    "ArgumentsError": "becomes a result that the model reads",
    "BadAskedSchema": "becomes the end of the reply that asked",
    "BadAnswer": "becomes another attempt of the summary, or its failure",
    "BadPlan": "becomes a result that the model reads",
    "BadTodos": "becomes a result that the model reads",
    "Changed": "becomes a result that the model reads",
    "Declined": "ends the demo when its person said no",
    "Elsewhere": "becomes another try of the call",
    "Gone": "becomes a restored session without that run",
    "QuestionGone": "becomes another look at what waits",
    "GivenUp": "becomes a result that the model reads",
    "LeftBehind": "becomes the outcome of a call whose worker leaves",
    "NoReplyError": "becomes another try of the model call, or the error of the reply, with the server's words",
    "ToldError": "becomes another try of the model call, or the error of the reply, with the server's words",
    "FewTries": "becomes another try of the model call, or the error of the reply",
    "NotInstalled": "ends `make` with what the installer said",
    "NotStarted": "becomes a result that the model reads",
    "NotAsked": "becomes an error that a server reads, or a result that the model reads",
    "NeedsInput": "becomes a question to a person",
    "HeldBack": "becomes another try of the model call",
    "WorkInterrupted": "becomes the interrupted outcome of a step",
    "LeftRunning": "becomes the unknown outcome of a call",
    "MaybeStarted": "becomes an activity of the call's own",
    "CustomAgentFailed": "becomes the error of the reply, with the kind's name",
    "MiddlewareFailed": "becomes the error of the call or the reply, under this name",
    "NotNotified": "becomes another try of the notification",
    "Problem": "becomes the HTTP answer",
    "StageFailed": "ends the demo when one of its processes does not come up",
    "ProviderUnavailable": "becomes another try of the model call",
    "Stalled": "ends an attempt that the server has given up",
    "TooLarge": "becomes `ask`",
    "TooMuch": "becomes a refusal of the operation",
    "TooSlow": "ends an answer that nobody reads",
    "Unreadable": "becomes `ask`",
    "UnreadableIndex": "becomes `ask`",
    "Unmeasured": "becomes a refusal of the call, with the folder that can't be read",
    "Unsteady": "becomes another try of the checkpoint",
    "Unusable": "becomes a refusal of the operation",
    "NotOffered": "becomes another try of the reply's preparation, with the sentence",
    "ServerUnavailable": "becomes a hint, or a result that the model reads",
    "ServerBusy": "becomes another try of the call, or a result that the model reads",
    "ServerFailure": "is what each failure of an MCP server is",
    "NoDocument": "becomes a line of `longhaul knowledge add` about a file that is left out",
    "ServerLost": "becomes another try of the call, or a result that the model reads",
}
"""Class to what it becomes before anybody outside meets it."""

GROUPS = ("BadSetup", "BadInput", "Unavailable", "Damaged")
"""Whose move it is."""

_CLASSES = """
import importlib, json, pkgutil
from pathlib import Path
import longhaul

def modules(folder, name):
    for one in pkgutil.iter_modules([str(folder)]):
        if one.name != "__main__" and not name.startswith("longhaul.starter.demo.project"):
            yield f"{name}.{one.name}"
            if one.ispkg:
                yield from modules(folder / one.name, f"{name}.{one.name}")

for name in modules(Path(longhaul.__file__).parent, "longhaul"):
    importlib.import_module(name)

def below(kind):
    for one in kind.__subclasses__():
        yield one
        yield from below(one)

ours = {one for one in below(Exception) if one.__module__.startswith("longhaul.") and not one.__name__.startswith("_")}
print(json.dumps(sorted({(one.__name__, tuple(base.__name__ for base in one.__mro__)) for one in ours})))
"""


Errors = dict[str, list[str]]


@pytest.fixture(scope="module")
def every_error() -> Errors:
    """Each class's name, with its ancestors' from itself up. In a process of its own, for it imports everything."""
    ran = subprocess.run([sys.executable, "-c", _CLASSES], capture_output=True, text=True, check=False, timeout=60)
    assert ran.returncode == 0, ran.stderr
    return dict(json.loads(ran.stdout))


def drawn() -> dict[str, set[str]]:
    """Each class of the tree in the docs, with those above it and those that its line says it is `also`."""
    rows, above = dict[str, set[str]](), list[str]()
    for line in DRAWN.read_text(encoding="utf-8").splitlines():
        if found := re.match(r"((?:[│ ]   |[├└]── )*)(\w+)  +(\S.*)", line):
            del above[len(found[1]) // 4 :]
            rows[found[2]] = {*above, *re.findall(r"also (\w+)", found[3])}
            above.append(found[2])
    return rows


def test_every_error_is_in_the_tree_or_known_to_stay_inside(every_error: Errors) -> None:
    outside = {name for name, ancestors in every_error.items() if "LonghaulError" not in ancestors}

    assert outside == INSIDE.keys()


def test_the_tree_that_is_drawn_is_the_tree_that_is(every_error: Errors) -> None:
    tree = {name: {*ancestors} for name, ancestors in every_error.items() if "LonghaulError" in ancestors}
    groups_above = {name: above & {*GROUPS} for name, above in drawn().items()}

    assert sorted(drawn()) == sorted(tree)
    assert [name for name, above in drawn().items() if not above <= tree[name]] == []
    assert groups_above == {name: (above - {name}) & {*GROUPS} for name, above in tree.items()}
