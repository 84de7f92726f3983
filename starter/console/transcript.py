"""Messages and calls of a session as a page shows them: each message with its blocks, each call with its result,
folded; and a call that waits with all there is to decide on, what hides or deceives marked.

Markdown of models becomes HTML by a library that passes no HTML on, and a sanitiser behind it.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from difflib import unified_diff
from itertools import islice, zip_longest
from typing import Any

import nh3
from markdown_it import MarkdownIt
from markdown_it.token import Token
from markupsafe import Markup, escape

from longhaul.agent.permission.preview import Part, argument_parts, brief
from longhaul.agent.plain.text import CLOSE, OPEN, gist, told_apart
from longhaul.agent.values.conversation.messages import (
    ContentBlock,
    DataBlock,
    FinishedReason,
    HintBlock,
    Msg,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
    ToolResultBlock,
    ToolResultState,
)
from longhaul.agent.views.session_views import BETWEEN
from longhaul.agent.views.would_pass import WouldPass
from longhaul.starter import render, render_pending
from longhaul.starter.console.console_request import Visit
from longhaul.starter.render import LISTS_TASKS, how_it_ran
from longhaul.starter.render_session import ago, until
from longhaul.starter.serve.response_bodies import Page, Row
from longhaul.starter.visible import harmless, one_line, visible
from longhaul.workflows.contract import PendingCall, Status

MOST_CHARS = 50_000
"""A longer text is shown as it is: to parse it would take seconds."""
_TAGS = {
    "a", "blockquote", "br", "code", "del", "em", "h1", "h2", "h3", "h4", "h5", "h6", "hr", "li", "ol", "p", "pre",
    "s", "strong", "table", "tbody", "td", "th", "thead", "tr", "ul",
}  # fmt: skip


def _no_picture(tokens: Sequence[Token], index: int, options: Any, environment: Any) -> str:
    """A picture would be fetched: its words and address are shown."""
    del options, environment
    token = tokens[index]
    return str(escape(f"[picture: {token.content} {token.attrGet('src') or ''}]"))


_PARSER = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"])
_PARSER.renderer.rules["image"] = _no_picture  # type: ignore[attr-defined]


def as_html(text: str, *, whole: bool = False) -> Markup:
    """`text` for a page: nothing in it runs, fetches or hides. `whole`: of one that is too long to be laid out nothing
    is left out either."""
    shown = harmless(text)
    if len(shown) > MOST_CHARS:
        return Markup('<pre class="long">{}</pre>').format(shown if whole else fitted(text))
    clean = nh3.clean(
        str(_PARSER.render(shown)),
        tags=_TAGS,
        attributes={"a": {"href"}},
        url_schemes={"http", "https", "mailto"},
        link_rel="noopener noreferrer nofollow",
    )
    return Markup(clean)  # noqa: S704  it comes from the sanitiser


def fitted(text: str, most: int = 20_000) -> str:
    """Harmless text, of a long one the beginning and the end, around a count of what is left out."""
    if len(text) <= most:
        return harmless(text)
    head, tail = text[: most * 2 // 3], text[-(most // 3) :]
    gone = len(text) - len(head) - len(tail)
    return f"{harmless(head)}\n⟨{gone} characters are not shown here⟩\n{harmless(tail)}"


GIST_CHARS = 200
_SHOWN = {"person", "outside", "event"}
"""Of a call that waits for these there is something to show as long as its tool is known; what is of unknown outcome
has run."""
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
    """That an analyzer found; empty where none looked."""
    effect: str
    """Its effect class in a few words; empty for a call that nobody decides on."""
    late: tuple[str, ...]
    """What has come of its deadline, a sentence each."""
    sleeps: str
    """Until what, in words; empty for a call that does not sleep."""
    then: str
    """What happens at `expires_at`, in words that a time follows."""
    expires_at: str
    """ISO time that is still to be waited for; empty: it waits as long as it takes."""
    approvals: str
    path: str
    """Of a sub-agent's call: `root › researcher › Bash`."""
    root: str
    """And the session at the head of its tree, while that is open."""


@dataclass(frozen=True, slots=True)
class CallGroup:
    """The calls of one session in the inbox."""

    session: str
    title: str
    count: int
    """With those that stand on other pages."""
    review: str
    """Where several are decided on together; empty for a single call."""
    depth: int
    """1 for a sub-agent's calls where those of its root are above them."""
    rows: tuple[WaitingRow, ...]


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


def waiting_row(call: PendingCall, row: Row | Status, link: str, root: Row | None = None) -> WaitingRow:
    return WaitingRow(
        link=link,
        tool=marked(call.tool),
        gist=_headline(call),
        session=marked(row.session_id),
        agent=marked(row.agent),
        user=marked(row.user_id or ""),
        asked_at=call.asked_at,
        waits_for=call.waits_for,
        risk=marked(call.risk),
        effect=_effect_in_short(call),
        late=tuple(_late(call)),
        sleeps=f"until the event {marked(call.event)}, or {until(call.wakes_at)}" if call.wakes_at else "",
        then=render_pending.at_expiry(call),
        expires_at="" if call.expired_at else call.expires_at,
        approvals=approvals(call),
        path=marked_path(call.path),
        root=marked(root.session_id) if root is not None else "",
    )


def _effect_in_short(call: PendingCall) -> str:
    if call.waits_for not in ("person", "outside"):
        return ""
    seen = call.preview.effect if call.preview else "its tool is not known any more"
    return seen.partition(":")[0]


LINE_END = f"{OPEN}U+000A{CLOSE}"
"""As `brief` writes the end of a line."""


def on_one_line(text: str) -> str:
    """Of a text that `brief` has shortened: line ends as people know them."""
    return text.replace(LINE_END, " ↵ ")


def _headline(call: PendingCall) -> str:
    """What a call is about, on one line; of a plan its first line, without the marks of a heading."""
    plan = render_pending.plan_of(call)
    if plan is None:
        return on_one_line(brief(gist(call.input), GIST_CHARS))
    return brief(next((line for line in plan.splitlines() if line.strip()), "").lstrip("# ").strip(), GIST_CHARS)


def _late(call: PendingCall) -> Iterator[str]:
    if call.expired_at:
        yield f"overdue: nobody answered until {ago(call.expired_at)}; it still waits"
    elif call.escalated_at:
        yield f"escalated to {marked(call.escalate_to)} {ago(call.escalated_at)}"
    elif call.reminded_at:
        yield f"reminder sent {ago(call.reminded_at)}"


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
        calls=tuple((on_one_line(marked(one.gist)), one.at) for one in found.newest),
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


MOST_COMPARED_LINES = 2_000
"""Of longer values the beginning and the end of both is shown: to compare them takes seconds."""
SHOWN_VALUE_CHARS = 4_000


def value_change(before: str, after: str) -> Iterator[DiffLine]:
    """From the one text to the other; nothing stands for an empty one."""
    was, now = told_apart(before).split("\n"), told_apart(after).split("\n")
    if before and after and len(was) + len(now) <= MOST_COMPARED_LINES and len(before) + len(after) <= MOST_CHARS:
        for line in islice(unified_diff(was, now, lineterm=""), 3, None):  # two names, and a place that nobody needs
            yield DiffLine(_KINDS.get(line[:1], "same"), visible(line))
        return
    for kind, sign, text in (("removed", "-", before), ("added", "+", after)):
        for line in fitted(told_apart(text), SHOWN_VALUE_CHARS).split("\n") if text else ():
            yield DiffLine(kind, visible(f"{sign}{line}"))


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


PAGE_MESSAGES = 50
MOST_PARTS = 4
"""Answers that a page is put together from. Each ends with the message that makes it too large."""


@dataclass(frozen=True, slots=True)
class SaidBlock:
    """One block. Which fields are set depends on `kind`."""

    kind: str
    """text, plain, thinking, hint, data or call."""
    text: str = ""
    html: str = ""
    """Safe as it is: `Markup`."""
    key: str = ""
    """Names a call on its page: it stays open while the page is renewed."""
    tool: str = ""
    state: str = ""
    mark: str = ""
    arguments: str = ""
    output: str = ""
    change: tuple[DiffLine, ...] = ()
    ran: str = ""
    """Its effect class and how long it took, where a worker ran it."""


@dataclass(frozen=True, slots=True)
class SaidMessage:
    """One message."""

    key: str
    """Names it on its page: it stays the same one while the page is renewed."""
    role: str
    name: str
    at: str
    blocks: tuple[SaidBlock, ...]
    ended: str
    """Why it is no whole answer; else empty."""


async def newest(visit: Visit, messages: int) -> Page:
    """The last of so many messages, up to the very last one: as many as a page has room for, and fewer where many of
    them are too large. Raises Problem."""
    start, following, found = 0, None, list[Msg]()
    for many in (PAGE_MESSAGES, MOST_PARTS):
        start, found = max(messages - many, 0), []
        following = start
        for _ in range(MOST_PARTS):
            part: Page = await visit.ask("transcript", {"from": following, "limit": PAGE_MESSAGES})
            found += part.messages
            following = part.next
            if following is None:
                return Page(start=start, next=None, messages=tuple(found))
    return Page(start=start, next=following, messages=tuple(found))


def said_messages(messages: Sequence[Msg]) -> list[SaidMessage]:
    """In order. A result stands with its call where both are on the page."""
    results = {
        block.id: block for message in messages for block in message.content if isinstance(block, ToolResultBlock)
    }
    called = {block.id for message in messages for block in message.content if isinstance(block, ToolCallBlock)}
    shown: list[SaidMessage] = []
    for message in messages:
        blocks = [shown for block in message.content for shown in _block(block, message.role, results, called)]
        ended = ""
        if message.finished_reason is FinishedReason.REFUSED and message.error is not None:
            ended = one_line(message.error.message)
        elif message.finished_reason is FinishedReason.INCOMPLETE:
            ended = "the message broke off here"
        shown.append(
            SaidMessage(message.id, message.role, one_line(message.name), message.created_at, tuple(blocks), ended)
        )
    return [one for one in shown if one.blocks or one.ended]


def _block(
    block: ContentBlock, role: str, results: dict[str, ToolResultBlock], called: set[str]
) -> Iterator[SaidBlock]:
    match block:
        case TextBlock() if role == "assistant":
            yield SaidBlock("text", html=as_html(block.text))
        case TextBlock():
            yield SaidBlock("plain", text=fitted(block.text))
        case ThinkingBlock():
            yield SaidBlock("thinking", text=fitted(block.thinking))
        case HintBlock():
            parts = (
                (block.hint,)
                if isinstance(block.hint, str)
                else tuple(part.text for part in block.hint if isinstance(part, TextBlock))
            )
            yield SaidBlock("hint", text=fitted("\n".join(parts)))
        case DataBlock():
            yield SaidBlock("data", text=one_line(f"{block.source.media_type} {block.name or ''}"))
        case ToolCallBlock():
            yield _call(block.id, block.name, block.input, results.get(block.id))
        case ToolResultBlock() if block.id not in called:
            yield _call(block.id, block.name, "", block)
        case ToolResultBlock():
            return


def _call(call_id: str, tool: str, arguments: str, result: ToolResultBlock | None) -> SaidBlock:
    change = result.metadata.get("diff") if result else None
    lists = tool == LISTS_TASKS and result is not None and result.state is ToolResultState.SUCCESS
    about = result.get_text().partition("\n")[0].rstrip(":") if result and lists else gist(arguments)
    return SaidBlock(
        "call",
        text=one_line(about[: GIST_CHARS * 2])[:GIST_CHARS],
        key=call_id,
        tool=one_line(tool),
        state=result.state.value if result else "running",
        mark=render.mark_of(result.state if result else None)[0],
        arguments=fitted(arguments),
        output=fitted(result.get_text()) if result else "",
        change=tuple(diff_lines(fitted(change))) if isinstance(change, str) else (),
        ran=how_it_ran(result) if result else "",
    )
