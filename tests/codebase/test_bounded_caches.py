"""What a worker keeps from one session to the next is bounded. Each place that could keep something is listed here: one
that is new makes a test fail until somebody has said what bounds it."""

import ast
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from longhaul.activities.attempt import workspaces
from longhaul.activities.attempt.workspaces import Workspaces
from longhaul.activities.context import context_cache, tokens
from longhaul.activities.context.context_cache import Contexts, Specs
from longhaul.activities.context.tokens import TokenCounter
from longhaul.activities.contract import RecordedPlace
from longhaul.activities.models import model
from longhaul.activities.models.model import ModelReply, SaidOnce
from longhaul.activities.tools import registry
from longhaul.activities.tools.file_search import Glob
from longhaul.activities.tools.registry import Toolbox
from longhaul.agent.values.conversation.messages import Usage, UserMsg
from longhaul.starter.worker_host import workflow_tasks
from longhaul.starter.worker_host.workflow_tasks import ParkedRuns
from longhaul.stores.offload import offloaders
from longhaul.stores.offload.offloaders import Offloaders
from tests.codebase.figures import DOORS
from tests.codebase.syntax import tree_of

ROOT = Path(__file__).parents[2]
ROOMS = ("activities", "longhaul/stores", "workflows", "longhaul/agent", "starter/worker_host", "starter/connection")
HOLDERS = {
    *("dict", "OrderedDict", "set", "deque", "list", "defaultdict"),
    *("Counter", "WeakValueDictionary", "WeakKeyDictionary", "WeakSet"),
}

FILLED = {"Contexts._sessions", "Offloaders._opened", "ParkedRuns._waiting", "SaidOnce._said"} | {
    *("Specs._known", "TokenCounter._fixed", "Toolbox._fitting", "Workspaces._seen"),
}
"""Over sessions: filled by a test below."""
BY_THEIR_OWN_NUMBER = {
    "Analyzers._found": "KEPT_FINDINGS",
    "AnthropicModel._answers": "ANSWERS_KEPT",
    "_Shown._kept": "KEPT, the oldest goes: tests/activities/models/requests/test_late_tools.py",
    "Arrangements._kept": "MOST_KEPT and LARGEST_KEPT: tests/activities/models/requests/test_arrangement.py",
    **dict.fromkeys(("_Arrangement.turns", "_Arrangement._taken", "_Arrangement.call_ids"), "as `Arrangements._kept`"),
    "Connections._kept": "MOST_KEPT, and those that are under way: tests/workflows/workers/test_mcp_crowd.py",
    "Connections._open": "as `_kept`",
    "Connections._turns": "weak: one is there as long as somebody holds it",
    **dict.fromkeys(("Keyring._keys", "Keyring._owned", "Keyring._parents"), "MOST_KEYS"),
    "FallingBehind._said": "the two kinds of tasks",
    "FolderSizes._known": "REMEMBERED",
    "KnownToolLimits._learned": "MODELS_KEPT",
    "RefusedParameters._learned": "MODELS_KEPT",
    "McpServers._listings": "MOST_LISTS",
    "activities/process/sandbox_view.py:_remembered": "a number of folders",
    "activities/repository.py:_remembered": "a number of folders",
    "activities/shell/git_repositories.py:_remembered": "REMEMBERED",
    **dict.fromkeys(
        ("FolderChanges._watches", "FolderChanges._readers"),
        "folders with a reader; of one that nobody closed until the folder changes or goes",
    ),
    "longhaul/stores/streams/stream_directory.py:_changes": "weak: the event loops that there are",
    "DirectoryStreams._newest": "a sweep every ten minutes forgets all of it",
    "DirectoryStreams._old": "what the sweep before has found, until the next one",
}
BY_THE_OPERATOR = {
    "RedisLeases._seen": "the workers of one task queue",
    "Encodings._searches": "the encodings that there are",
    "McpServers._failed": "the servers of the settings, and those that are tried again",
    "McpServers._listing": "listings under way",
    "Providers._models": "pairs of address and key that operators and agents may name; CLOUDS_KEPT of clouds",
    "Providers._limits": "keys",
    "Toolbox._tools": "the tools of the settings",
}
WHILE_IT_LASTS = {
    *(
        "Assembly.drafts",
        "FusedReads.tried",
        "_SchemaReferences._names",
        "_SchemaReferences._moved",
        "Assembly._stray",
        "_Pieces._drafts",
        "HalfSaid._blocks",
        "HeardReasoning._details",
        "Pieces._blocks",
        "LineWindow.lines",
    ),
    *("_Merged.properties", "_Merged.required", "_Merged.choices"),
    *("_Reply._counts", "Samples.told", "_Telling.messages", "_Counting._ended"),
    "SeveralNames._found",
    *(
        "_Counting._seconds",
        "_Counting._exhausted",
        "_Ended.replies",
        "_Heard.told",
        "FoundMessages.messages",
        "Newest._kept",
    ),
    *("MeanwhileAsked.questions", "MeanwhileAsked.answers", "Repairing._instead", "Repairing.refused"),
    *("Batches._waiting", "Outlet._masks", "ImportProblems.problems", "ReplyReducer.hints", "ReplyReducer._done"),
    *(
        "ReplyReducer._results",
        "ReplyReducer._live",
        "FusedReads.unfused",
        "FusedReads._brought",
        "Turns._queue",
        "Snapshot._kept",
    ),
    *("_Total._twice", "FusedReads._brought"),
    *(
        "Doing.running",
        "Background.running",
        "Background._stopped",
        "Underway._handles",
        "AgentHub._telling",
        "Children._watched",
        "_Asks.running",
        "_Asks.answers",
        "_Instance._under_way",
        "_Instance._of_user",
    ),
}
"""Of one call, one reply or one run of a workflow, and gone with it; `ParkedRuns` and the SDK bound the runs."""
UNDER_WAY = {
    *("CancelHints._telling", "CallThreads._started", "CallThreads._left", "Publisher._waiting", "Publisher._writing"),
    *("DirectoryLeases._slots", "RedisLeases._calls"),
    *("Publisher._later", "Threads._work", "Outputs._kept"),
    *("activities/attempt/heartbeat.py:_watching", "activities/attempt/heartbeat.py:_listening"),
    "activities/attempt/call_attempts.py:_left",
    "longhaul/plugin.py:_hosts",
}
"""Taken out where it ends."""
MEANT_TO_KEEP = {"MemoryStore._bodies"}
"""LONGHAUL_STORE=memory, for tests and demos."""
UNBOUNDED_BUT_FEW = {
    *("activities/process/sandbox.py:bwrap_problem", "activities/process/sandbox.py:_found_bwrap"),
    *("activities/process/program_run.py:_compiled", "starter/worker_host/own_build.py:own_build_id"),
    "starter/connection/connect.py:settle_before_exit",
}
"""Functions with `@cache`: without arguments, or with a path of the settings."""


def holds(value: ast.expr | None) -> bool:
    """Whether an empty container is made."""
    if isinstance(value, ast.Dict):
        return not value.keys
    if isinstance(value, ast.Set | ast.List):
        return not value.elts
    made = value.func if isinstance(value, ast.Call) and not value.args else None
    made = made.value if isinstance(made, ast.Subscript) else made
    return isinstance(made, ast.Name) and made.id in HOLDERS


def assigned(body: list[ast.stmt]) -> list[ast.expr]:
    found = list[ast.expr]()
    for each in body:
        if isinstance(each, ast.AnnAssign) and holds(each.value):
            found.append(each.target)
        elif isinstance(each, ast.Assign) and holds(each.value):
            found += each.targets
    return found


def kept_in(path: Path) -> set[str]:
    """`Class.attribute` of what `__init__` makes empty, and `path:name` of the same at the module's top."""
    tree = tree_of(path)
    found = {f"{path.relative_to(ROOT)}:{ast.unparse(name)}" for name in assigned(tree.body)}
    for owner in (node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)):
        for made in (each for each in owner.body if isinstance(each, ast.FunctionDef) and each.name == "__init__"):
            inner = [each for each in ast.walk(made) if isinstance(each, ast.stmt)]
            found |= {f"{owner.name}.{each.attr}" for each in assigned(inner) if isinstance(each, ast.Attribute)}
    return found


def cached_in(path: Path) -> dict[str, bool]:
    """Functions that remember their answers, and whether a number bounds them."""
    found = dict[str, bool]()
    for node in ast.walk(tree_of(path)):
        for each in node.decorator_list if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) else ():
            name, _, numbers = ast.unparse(each).partition("(")
            if name.rpartition(".")[2] in ("cache", "lru_cache"):
                assert isinstance(node, ast.FunctionDef)
                found[f"{path.relative_to(ROOT)}:{node.name}"] = "lru_cache" in name and "None" not in numbers
    return found


FILES = [path for room in ROOMS for path in sorted((ROOT / room).rglob("*.py"))] + [ROOT / "worker.py", *DOORS]


@pytest.mark.proves("E1")
def test_each_place_that_could_keep_something_is_listed() -> None:
    found = set[str]().union(*map(kept_in, FILES))
    listed = [FILLED, set(BY_THEIR_OWN_NUMBER), set(BY_THE_OPERATOR), WHILE_IT_LASTS, UNDER_WAY, MEANT_TO_KEEP]

    assert len(found) > 50, "the files were not read"
    assert found == set[str]().union(*listed)
    assert sum(map(len, listed)) == len(found)


def test_a_function_that_remembers_has_a_bound() -> None:
    cached = {name: bounded for path in FILES for name, bounded in cached_in(path).items()}

    assert {name for name, bounded in cached.items() if not bounded} == UNBOUNDED_BUT_FEW


def test_a_new_cache_would_be_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(globals(), "ROOT", tmp_path)
    lines = ("_all: dict[str, int] = {}", "class New:", "    def __init__(self):", "        self._kept = set[str]()")
    (tmp_path / "new.py").write_text("\n".join((*lines, "@cache", "def of(name): ...")))

    assert kept_in(tmp_path / "new.py") == {"new.py:_all", "New._kept"}
    assert cached_in(tmp_path / "new.py") == {"new.py:of": False}


Fill = Callable[[Path, int], Awaitable[object]]
"""What keeps something, when so many sessions have been served."""


async def said(folder: Path, sessions: int) -> object:
    del folder
    kept = SaidOnce()
    for number in range(sessions):
        kept.tell(f"s{number}", "m", ModelReply((), Usage(), "m", notes=("no seed",)))
    return kept


async def prompts(folder: Path, sessions: int) -> object:
    del folder
    kept = Specs()
    for number in range(sessions):
        kept.keep(f"You are number {number}.", ())
    return kept


async def fixed(folder: Path, sessions: int) -> object:
    del folder
    kept = TokenCounter()
    for number in range(sessions):
        kept.count_fixed(f"You are number {number}.", (), "scripted:x")
    return kept


async def places(folder: Path, sessions: int) -> object:
    kept = Workspaces(folder)
    for number in range(sessions):
        root, nonce = kept.bind(None, f"s{number}")
        recorded = RecordedPlace(root=str(root), nonce=nonce, agent="lamp", session_id=f"s{number}")
        await kept.find(recorded)
    return kept


async def offloads(folder: Path, sessions: int) -> object:
    kept = Offloaders(folder)
    for number in range(sessions):
        await kept.get("workspace", "lamp", f"user{number}")
    return kept


async def runs(folder: Path, sessions: int) -> object:
    del folder
    kept = ParkedRuns(lambda run_id: None)
    for number in range(sessions):
        kept.told(f"run{number}", waits=True)
    return kept


async def contexts_of(folder: Path, sessions: int) -> object:
    del folder
    kept = Contexts(capacity_bytes=200_000)
    for number in range(sessions):
        kept.session(f"s{number}", 1).append(UserMsg("ana", "x" * 1_000), f"d{number}")
    for _ in range(context_cache.WEIGHED_EACH):
        kept.session("s0", 1)
    return kept


async def arguments(folder: Path, calls: int) -> object:
    del folder
    kept = Toolbox([Glob()])
    for number in range(calls):
        kept.validate("Glob", f'{{"pattern": "{number}"}}')
    return kept


FILLS: dict[str, tuple[Fill, int]] = {
    "Contexts._sessions": (contexts_of, 200),
    "Offloaders._opened": (offloads, offloaders.KEPT_OFFLOADERS),
    "ParkedRuns._waiting": (runs, workflow_tasks.KEPT),
    "SaidOnce._said": (said, model.SESSIONS_KEPT),
    "Specs._known": (prompts, context_cache.KEPT),
    "TokenCounter._fixed": (fixed, tokens.FIXED_KEPT),
    "Toolbox._fitting": (arguments, registry.FITTING_KEPT),
    "Workspaces._seen": (places, workspaces.KEPT_PLACES + 1),
}


@pytest.mark.proves("E1")
@pytest.mark.parametrize("name", sorted(FILLS))
async def test_what_is_kept_of_sessions_stays_bounded_whatever_their_number(
    name: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("ERROR")
    fill, bound = FILLS[name]

    kept = [vars(await fill(tmp_path, number))[name.partition(".")[2]] for number in (bound + 50, 2 * bound + 50)]

    assert all(0 < len(each) <= bound for each in kept)


def test_each_cache_over_sessions_is_filled() -> None:
    assert set(FILLS) == FILLED
