"""A call that waits, as a page shows it: all there is to decide on, with what hides or deceives marked."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import zip_longest

from longhaul.agent.permission.preview import Part, argument_parts, brief
from longhaul.agent.plain.text import gist, told_apart
from longhaul.agent.views.session_views import BETWEEN
from longhaul.agent.views.would_pass import WouldPass
from longhaul.starter import render_pending
from longhaul.starter.console.markdown import as_html
from longhaul.starter.serve.response_bodies import Row
from longhaul.starter.visible import one_line, visible
from longhaul.workflows.contract import PendingCall, Status

GIST_CHARS = 200
_SHOWN = {"person", "outside", "wake-up"}
"""Of a call that waits for these there is something to show as long as its tool is known; what is in doubt has run."""
_KINDS = {"+": "added", "-": "removed", "@": "place"}


@dataclass(frozen=True, slots=True)
class DiffLine:
    """One line of a diff."""

    kind: str
    """added, removed, place, file or same."""
    text: str


@dataclass(frozen=True, slots=True)
class DiffPair:
    """One line of a diff in two columns; None where a side has none."""

    before: DiffLine | None
    after: DiffLine | None


@dataclass(frozen=True, slots=True)
class WaitingRow:
    """One line of the inbox."""

    link: str
    tool: str
    gist: str
    session: str
    agent: str
    user: str
    asked_at: str
    waits_for: str
    risk: str
    deadline: tuple[str, ...]
    expires_at: str
    """ISO time that is still to be waited for; empty: it waits as long as it takes."""
    approvals: str
    path: str
    """Of a sub-agent's call: `root › researcher › Bash`."""
    root: str
    """And the session at the head of its tree, while that is open."""


@dataclass(frozen=True, slots=True)
class RuleRow:
    """A suggested rule, and what it comes to."""

    name: str
    says: str
    """A sentence on what else it would have let pass lately."""
    calls: tuple[tuple[str, str], ...]
    """The newest of these: what each was about, and when."""


@dataclass(frozen=True, slots=True)
class WaitingCall:
    """All of one call."""

    row: WaitingRow
    call_id: str
    digest: str
    effect: str
    cwd: str
    arguments: tuple[Part, ...]
    whole: tuple[Part, ...]
    """The arguments again, where something was left out of them."""
    findings: tuple[Part, ...]
    change: tuple[DiffLine, ...]
    reason: str
    rules: tuple[str, ...]
    signed: bool
    event: str
    """As it is to be told; what a page shows of it is marked."""
    wakes_at: str
    plan: str = ""
    """HTML, safe as it is: of a call that hands a plan to a person, all of it, laid out. `whole` has it as written."""

    @property
    def state(self) -> str:
        """Another one than was shown: somebody has answered, or what it is about has changed."""
        return f"{self.digest} {self.row.approvals}"


def waiting_row(call: PendingCall, row: Row | Status, link: str, risk: str = "", root: Row | None = None) -> WaitingRow:
    return WaitingRow(
        link=link,
        tool=marked(call.tool),
        gist=brief(gist(call.input), GIST_CHARS),
        session=marked(row.session_id),
        agent=marked(row.agent),
        user=marked(row.user_id or ""),
        asked_at=call.asked_at,
        waits_for=call.waits_for,
        risk=risk,
        deadline=tuple(render_pending.deadline(call)),
        expires_at="" if call.expired_at else call.expires_at,
        approvals=approvals(call),
        path=marked_path(call.path),
        root=marked(root.session_id) if root is not None else "",
    )


def waiting_call(call: PendingCall, row: WaitingRow) -> WaitingCall:
    seen = call.preview
    arguments = seen.arguments if seen else argument_parts(call.input)
    plan = render_pending.plan_of(call)
    left_out = plan is not None or any(part.left_out for part in arguments)
    return WaitingCall(
        row=row,
        call_id=call.call_id,
        digest=call.digest,
        effect=seen.effect if seen else "its tool is not known any more" if call.waits_for in _SHOWN else "",
        cwd=seen.cwd if seen else "",
        arguments=arguments,
        whole=argument_parts(call.input, whole=True) if left_out else (),
        findings=tuple(part for part in (seen.findings if seen else ()) if part.name != "change"),
        change=tuple(diff_lines(told_apart(call.notice))),
        reason=marked(call.reason),
        rules=tuple(marked(rule.spelt()) for rule in call.suggested_rules),
        signed=call.signed,
        event=call.event,
        wakes_at=call.wakes_at,
        plan="" if plan is None else as_html(told_apart(plan), whole=True),
    )


def rule_row(found: WouldPass) -> RuleRow:
    return RuleRow(
        name=marked(found.rule.spelt()),
        says=render_pending.passes(found),
        calls=tuple((marked(one.gist), one.at) for one in found.newest),
    )


def marked(text: str) -> str:
    """On one line, with its marks."""
    return one_line(visible(told_apart(text)))


def marked_path(path: str) -> str:
    """Of a sub-agent: each name with its marks. The signs between are ours."""
    return BETWEEN.join(marked(name) for name in path.split(BETWEEN))


def approvals(call: PendingCall) -> str:
    """`1 of 2 (ana)`, where more than one person has to approve."""
    if call.approvers <= 1:
        return ""
    by = ", ".join(marked(who) for who in call.approved_by)
    return f"{len(call.approved_by)} of {call.approvers}{f' ({by})' if by else ''}"


def diff_lines(text: str) -> Iterator[DiffLine]:
    for line in text.split("\n") if text else ():
        kind = "file" if line.startswith(("---", "+++")) else _KINDS.get(line[:1], "same")
        yield DiffLine(kind, visible(line))


def side_by_side(lines: Iterable[DiffLine]) -> Iterator[DiffPair]:
    """What was removed stands beside what was added in its place; names and places of files stand on both sides."""
    removed, added = list[DiffLine](), list[DiffLine]()
    for line in lines:
        if line.kind == "removed" and not added:
            removed.append(line)
        elif line.kind == "added":
            added.append(line)
        else:
            yield from _beside(removed, added)
            removed, added = ([line], []) if line.kind == "removed" else ([], [])
            if not removed:
                yield DiffPair(line, line)
    yield from _beside(removed, added)


def _beside(removed: list[DiffLine], added: list[DiffLine]) -> Iterator[DiffPair]:
    for before, after in zip_longest(removed, added):
        yield DiffPair(before, after)
