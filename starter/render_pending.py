"""Renders calls that wait, as people decide on them: what they would do, and the commands that answer them."""

import json
import re
import shlex
from collections.abc import Iterable, Iterator, Sequence

from markdown_it import MarkdownIt
from rich.console import Console
from rich.markdown import Markdown
from rich.text import Text

from longhaul.agent.permission.preview import Preview, argument_parts
from longhaul.agent.plain.text import parsed, told_apart
from longhaul.agent.values.conversation.messages import example, in_words
from longhaul.agent.values.plans import PLAN_EXIT
from longhaul.agent.views.would_pass import WouldPass
from longhaul.starter import render
from longhaul.starter.visible import harmless, one_line, visible
from longhaul.workflows.contract import PendingCall

SHORT_DIGEST = 12
LISTED_CHARS = 100
_TOLD_BY_CHANGE = {"Write": ("content",), "Edit": ("old_string", "new_string")}
"""Arguments of these tools that their diff says, as far as it is whole."""
_DIFF_LINE_CHARS = 400
"""A longer line of a diff may have been cut."""
_BLANKS = re.compile(r"\S[ \t]{24,}\S|(?:\n[-+ ]?[ \t]*(?=\n)){24,}")
"""Behind so many, something may leave the screen: the arguments have them counted."""
_PLAN_WIDTH = 80
# HTML and definitions of links are text here: in a plan that somebody approves they would be a place to hide.
_OF_PLANS = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"]).disable("reference")


def pending_call(call: PendingCall, *, whole: bool = False, width: int = _PLAN_WIDTH) -> Text:
    """All that a person needs to decide on a call; `whole` leaves nothing out of its arguments. `width`: cells that a
    plan is laid out in."""
    if call.waits_for == "budget":
        return Text.assemble(("more budget", "bold yellow"), f": {one_line(call.reason)}")
    plan = plan_of(call)
    head = visible(call.tool) if plan is None else "a plan, to be approved"
    shown = Text.assemble((head, "bold yellow"), ("  ", ""), (one_line(call.call_id), "dim"), "\n")
    if call.path:
        shown.append(f"  of {one_line(visible(call.path))}\n", "yellow")
    asked = _asked_for(call, whole=whole) if plan is None else _planned(call, plan, whole=whole, width=width)
    shown.append_text(asked)
    if call.approvers > 1:
        shown.append(f"\n  approvals: {len(call.approved_by)} of {call.approvers}", "yellow")
        by = ", ".join(one_line(visible(who)) for who in call.approved_by)
        shown.append(f" (by {by}); another person must approve it too" if by else "", "yellow")
    if call.signed:
        shown.append("\n  only a signed decision counts: LONGHAUL_APPROVAL_KEY signs it", "yellow")
    if call.asked is not None:
        shown.append("\n").append_text(render.behind_bar(visible(in_words(call.asked))))
    elif call.reason:
        shown.append("\n  why: ", "dim").append(one_line(visible(call.reason)))
    for line in deadline(call):
        shown.append(f"\n  {line}", "yellow")
    if call.notice:
        shown.append("\n").append_text(render.diff(told_apart(call.notice)))
    if call.suggested_rules:
        names = ", ".join(one_line(visible(rule.spelt())) for rule in call.suggested_rules)
        shown.append("\n  suggested rules: ", "dim").append(names)
    return shown


def plan_of(call: PendingCall) -> str | None:
    """The plan, in Markdown, that a call of `plan_exit` hands to a person; None of any other call, or where something
    stands beside it."""
    given = parsed(call.input) if call.tool == PLAN_EXIT else None
    plan = given.get("plan") if given is not None and len(given) == 1 else None
    return plan if isinstance(plan, str) and plan.strip() else None


def _asked_for(call: PendingCall, *, whole: bool) -> Text:
    seen = call.preview
    if seen is None:
        return render.arguments_in_full(call.input)
    shown, below = Text(), () if whole else _told_by_change(call)
    for part in argument_parts(call.input, whole=True) if whole else seen.arguments:
        if part.name in below:
            shown.append(f"  {part.name}", "cyan").append(": in the change below\n", "dim")
            continue
        shown.append(f"  {part.name}\n", "cyan").append_text(render.behind_bar(part.text)).append("\n")
    shown.append(f"  {seen.effect}", "dim").append(f"; in {seen.cwd}" if seen.cwd else "", "dim")
    for part in seen.findings:
        if part.name == "change":
            continue  # it stands below, in colours
        style = "bold red" if part.name == "warning" else "cyan"
        shown.append(f"\n  {part.name}\n", style).append_text(render.behind_bar(part.text))
    if _leaves_out(seen) and not whole:
        shown.append("\n  this is shortened; --show shows all", "yellow")
    return shown


def _planned(call: PendingCall, plan: str, *, whole: bool, width: int) -> Text:
    """All of the plan, laid out; `whole`: as it was written, which shows what Markdown leaves unsaid."""
    text = told_apart(plan)
    shown = render.behind_bar(text) if whole else _laid_out(text, width)
    if call.preview is not None:
        shown.append(f"\n  once approved: {call.preview.effect}", "dim")
    if not whole:
        shown.append("\n  formatted; --show shows its source", "dim")
    return shown


def _laid_out(text: str, width: int) -> Text:
    page = Markdown("", hyperlinks=False, code_theme="ansi_dark")
    page.parsed = _OF_PLANS.parse(text)
    console = Console(width=max(width - 4, 20), color_system=None)
    shown = Text()
    for line in console.render_lines(page, pad=False):
        shown.append("\n" if shown else "").append("  │ ", "dim")
        for segment in line:
            # Once more: an entity such as `&#x202e;` becomes its character only while it is laid out.
            shown.append(harmless(segment.text), segment.style)
        shown.rstrip()
    return shown


def passes(found: WouldPass) -> str:
    """A sentence on what else a suggested rule would have let pass lately."""
    tool = one_line(visible(found.rule.tool_name))
    if not found.looked_at:
        return f"no other call of {tool} was made here recently"
    if found.looked_at == 1:
        return f"it would {'' if found.count else 'not '}have allowed the last other call of {tool}"
    return f"of the last {found.looked_at} other calls of {tool} it would have allowed {found.count or 'none'}"


def would_pass(found: Sequence[WouldPass]) -> Iterator[Text]:
    """What suggested rules come to: a line for each, and one for each call that it would have let pass too."""
    for one in found:
        yield Text(f"  {one_line(visible(one.rule.spelt()))}: {passes(one)}", "dim")
        for passed in one.newest:
            line = Text(f"  │ {one_line(visible(passed.gist))}", "dim")
            line.truncate(LISTED_CHARS, overflow="ellipsis")
            yield line


def call_list(calls: Sequence[PendingCall]) -> Iterator[Text]:
    """Calls of one turn that wait together, a line each: what there is to decide before the first is looked at."""
    yield Text(f"\n{len(calls)} calls wait for you:", style="bold yellow")
    for place, call in enumerate(calls, 1):
        line = Text(f"  {place} ").append_text(render.call_line(visible(call.tool), visible(call.input)))
        line.truncate(LISTED_CHARS, overflow="ellipsis")
        yield line


def is_cut(call: PendingCall) -> bool:
    """Whether `pending_call` shows less than all of its arguments, or some in the change alone, or a plan laid out."""
    if plan_of(call) is not None:
        return True
    return call.preview is not None and (_leaves_out(call.preview) or bool(_told_by_change(call)))


def _leaves_out(seen: Preview) -> bool:
    return any(part.left_out for part in seen.arguments)


def _told_by_change(call: PendingCall) -> tuple[str, ...]:
    """Arguments of which the diff that is shown says all."""
    lines = call.notice.split("\n")
    is_diff = call.notice.startswith("--- ") and "\n@@ " in call.notice
    is_whole = not any(line.startswith("…") or len(line) > _DIFF_LINE_CHARS for line in lines)
    return _TOLD_BY_CHANGE.get(call.tool, ()) if is_diff and is_whole and not _BLANKS.search(call.notice) else ()


def deadline(call: PendingCall) -> Iterator[str]:
    """What has come of its deadline and what is to come, a sentence each."""
    if call.expired_at:
        yield f"overdue: nobody answered by {render.when(call.expired_at)}; it still waits"
    elif call.escalated_at:
        yield f"escalated to {one_line(visible(call.escalate_to))} at {render.when(call.escalated_at)}"
    elif call.reminded_at:
        yield f"reminded of at {render.when(call.reminded_at)}"
    if call.wakes_at:
        yield f"until {render.when(call.wakes_at)}, or until somebody sends the event {one_line(visible(call.event))!r}"
    if call.expires_at:
        yield f"deadline {render.when(call.expires_at)}; then it is {at_expiry(call)}"


def at_expiry(call: PendingCall) -> str:
    """What a call becomes when its time is over: "denied", and its like."""
    if call.on_expiry != "deny":
        return "overdue"
    if call.asked is not None:
        return "given up"
    return "given up, its outcome unknown" if call.waits_for == "outside" else "denied"


def how_to_answer(session_id: str, call: PendingCall, flags: Sequence[str] = ()) -> Text:
    """The commands that answer a call, ready to be pasted."""
    if call.waits_for == "outside":
        outputs = [example(call.asked), "decline"] if call.asked is not None else ["TEXT"]
        return _commands([["result", session_id, call.call_id, "--output", text, *flags] for text in outputs])
    if call.waits_for == "event":
        return _commands([["notify", session_id, call.event, *flags]])
    if call.waits_for == "resolution":
        words = ("--happened", "--did-not")
        return _commands([["resolve", session_id, call.call_id, word, *flags] for word in words])
    if call.waits_for == "budget":
        lacks = [f"--raise-{lack['name']}" for lack in json.loads(call.input)["lacks"]]
        answers = [[*lacks[:1], "N"], ["--stop"], ["--summarise"]]
        return _commands([["budget", session_id, *each, *flags] for each in answers])
    seen = [f"--seen={short_digest(call)}"] if call.digest else []
    answers = [["approve", session_id, call.call_id, *seen, *flags]]
    if call.suggested_rules:
        answers.append(["approve", session_id, call.call_id, "--accept-rules", *seen, *flags])
    answers.append(["deny", session_id, call.call_id, "--reason", "TEXT", *flags])
    return _commands(answers)


def short_digest(call: PendingCall) -> str:
    """Enough of what names the call as it was shown to tell it from any other state of the same call."""
    return call.digest[:SHORT_DIGEST]


def _commands(lines: Iterable[Sequence[str]]) -> Text:
    # A pasted line must hold no control characters of a call id; such an id can be answered through --json only.
    return Text("\n".join("  longhaul " + one_line(visible(shlex.join(words))) for words in lines))
