"""Asks the analyzers that an agent names about one call, and keeps the worst that they say.

One that fails, takes too long or answers rubbish counts as high. What was found once for the same call, findings and
context is not asked for again.
"""

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TypedDict, cast

from longhaul.activities.analysis.analyzer import Analyzer, Case, Finding
from longhaul.activities.models.requests.said_once import MOST_NOTES
from longhaul.activities.process.cancelled_here import is_cancelled_here
from longhaul.activities.tools.setup_error import ToolSetupError
from longhaul.agent.permission.call_facts import risk_by_rules
from longhaul.agent.permission.decision_table import RULES_ANALYZER, worse
from longhaul.agent.plain.values import digest_of
from longhaul.agent.values.permission import Risk
from longhaul.stores.loading import found_at, names_in

log = logging.getLogger(__name__)

TIMEOUT_SECONDS = 30.0
"""For each analyzer and call; the activity has a minute for all of its calls side by side."""
KEPT_FINDINGS = 1_000
MAX_REASON_CHARS = 500


class AnalyzerSetupError(ToolSetupError):
    """The operator's mistake: an analyzer that can't be loaded."""


class ByRules:
    """Patterns and taint (`agent.permission.call_facts`)."""

    async def analyze(self, case: Case) -> Finding:
        return Finding(*risk_by_rules(case.tool, case.arguments, case.facts, case.tainted))


class Analyzers:
    """Those that this worker has, by name."""

    def __init__(self, known: Mapping[str, Analyzer] | None = None, timeout_seconds: float = TIMEOUT_SECONDS) -> None:
        self._known: dict[str, Analyzer] = {RULES_ANALYZER: ByRules(), **(known or {})}
        self._timeout_seconds = timeout_seconds
        self._found: OrderedDict[str, Finding] = OrderedDict()

    @property
    def names(self) -> tuple[str, ...]:
        """Those that agents may name."""
        return tuple(self._known)

    async def analyze(self, case: Case, names: Sequence[str], context_digest: str) -> Finding:
        """The worst of what they find; its usage is that of all. Raises nothing."""
        found = await asyncio.gather(*(self._one(name, case, context_digest) for name in names))
        worst = found[0]
        for finding in found[1:]:
            worst = finding if worse(worst.risk, finding.risk) != worst.risk else worst
        paid = [finding.usage for finding in found if finding.usage is not None]
        return replace(worst, usage=sum(paid[1:], paid[0]) if paid else None, **told_of(found))

    async def _one(self, name: str, case: Case, context_digest: str) -> Finding:
        key = _key(name, case, context_digest)
        if (kept := self._found.get(key)) is not None:
            self._found.move_to_end(key)
            return Finding(kept.risk, kept.reason)
        analyzer = self._known.get(name)
        if analyzer is None:
            return _failed(name, "this worker has no analyzer of that name")
        try:
            async with asyncio.timeout(self._timeout_seconds):
                finding = _sound(await analyzer.analyze(case))
        except TimeoutError:
            return _failed(name, f"it took more than {self._timeout_seconds:g} s")
        except BaseException as error:  # somebody else's code: whatever it raises, the call must not run unasked
            if is_cancelled_here(error):
                raise
            log.warning("the analyzer %r failed: %s", name, error)
            return _failed(name, f"it failed ({type(error).__name__})")
        self._found[key] = finding
        while len(self._found) > KEPT_FINDINGS:
            self._found.popitem(last=False)
        return finding


def _key(name: str, case: Case, context_digest: str) -> str:
    """`rules` looks at no message; of the others nobody knows."""
    seen = "" if name == RULES_ANALYZER else context_digest
    return digest_of(
        [name, case.model, case.tool.digest, case.arguments, case.facts.model_dump(mode="json"), case.tainted, seen]
    )


def _sound(finding: object) -> Finding:
    """Raises ValueError for what is no finding."""
    if not isinstance(finding, Finding) or not isinstance(finding.reason, str):
        raise ValueError("it gave no Finding")
    return replace(finding, risk=Risk(finding.risk), reason=finding.reason[:MAX_REASON_CHARS])


class JudgeNotes(TypedDict):
    model: str
    notes: tuple[str, ...]


def told_of(found: Sequence[Finding]) -> JudgeNotes:
    """What was left out when a model was asked, each once, and of which model: the first of whom there is something to
    say, for a session asks one."""
    model = next((finding.model for finding in found if finding.notes), "")
    said = (note for finding in found if finding.model == model for note in finding.notes)
    return {"model": model, "notes": tuple(dict.fromkeys(said))[:MOST_NOTES]}


def _failed(name: str, why: str) -> Finding:
    return Finding(Risk.HIGH, f"the analyzer {name!r} could not tell: {why}")


def load_analyzers(names: str) -> dict[str, Analyzer]:
    """Analyzers of the operator's own, from `"shop.safety:Guard, shop.safety:watch"`, by those names.

    Each is an object with an async `analyze(case)`, or a class that makes one without arguments. Agents may name only
    what is loaded here. Raises AnalyzerSetupError.
    """
    return {name: _load(name) for name in names_in(names)}


def _load(name: str) -> Analyzer:
    made = found_at(name, "analyzer", AnalyzerSetupError)
    if not callable(getattr(made, "analyze", None)):
        raise AnalyzerSetupError(f"{name!r} is no analyzer: it has no method `async def analyze(self, case)`")
    return cast(Analyzer, made)
