"""A preview shows a person a call before they decide: made from the real arguments and findings, never by a model.

Long texts keep their beginning and their end, around a mark that counts what is left out: an end that nobody sees is
where the harm would stand.
"""

import json
import re
from collections.abc import Callable, Sequence
from typing import TypeVar

from longhaul.agent.permission.call_analysis import Boundary, CallAnalysis, PathUse, SubCommand
from longhaul.agent.plain.text import CLOSE, OPEN, parsed, told_apart
from longhaul.agent.plain.values import OpenValue, sparse
from longhaul.agent.values.conversation.tools import EFFECT_WORDS, Effect
from longhaul.agent.values.plans import PLAN_ENTER, PLAN_EXIT

PART_CHARS = 4_000
PART_LINES = 60
CHANGE_CHARS = 8_000
"""Of a diff, which has been cut already where it was made; its marks take more room than the characters."""
NAME_CHARS = 200
MOST_PARTS = 30
INDENTED_CHARS = 1_000
BLANKS = 24
"""A longer run of blanks is counted instead of shown: what stands behind it must not leave the screen."""

_INSIDE = {
    PLAN_ENTER: "begins plan mode: from then on only calls run that change nothing",
    PLAN_EXIT: "ends plan mode: from then on calls may change things, as the session's mode and rules let them",
}
"""What the session answers itself, and what follows from it: to say that it only reads would mislead."""
_BLANKS = re.compile(rf"[ \t]{{{BLANKS},}}|\n{{{BLANKS},}}")
_NEWLINE = f"{OPEN}U+000A{CLOSE}"

Fact = TypeVar("Fact")


class Part(OpenValue):
    """One thing to look at: its name and text, with everything that hides or deceives written as `⟨U+202E⟩`."""

    name: str
    text: str
    left_out: int = sparse(0)
    """Characters that stand between the beginning and the end that are shown."""


class Preview(OpenValue):
    """One call as it would run."""

    effect: str
    cwd: str = sparse("")
    arguments: tuple[Part, ...] = sparse(())
    findings: tuple[Part, ...] = sparse(())
    """`warning`, `sandbox`, `touches`, `change`; at length also `risk`, `commands`: what was found out about it, as far
    as there is something to tell."""


def preview(arguments: str, analysis: CallAnalysis, effect: Effect, tool: str = "") -> Preview:
    """`arguments`: JSON as it would run; `tool`: its name, for those whose calls change what the session may do. It is
    recorded; `at_length` has what whoever asks is told beside."""
    return Preview(
        effect=_INSIDE.get(tool, EFFECT_WORDS[effect]),
        cwd=brief(analysis.cwd, NAME_CHARS),
        arguments=argument_parts(arguments),
        findings=_findings(analysis),
    )


def at_length(seen: Preview, analysis: CallAnalysis, *, has_network: bool) -> Preview:
    """With what analyzers think of it and what each command of it comes to. `has_network`: of what a sandbox holds."""
    risk, commands = _risk(analysis), _commands(analysis, has_network=has_network)
    return seen.model_copy(update={"findings": (*risk, *seen.findings, *commands)})


def _risk(analysis: CallAnalysis) -> tuple[Part, ...]:
    why = f": {analysis.risk_reason}" if analysis.risk_reason else ""
    return (Part(name="risk", text=brief(f"{analysis.risk}{why}", PART_CHARS)),) if analysis.risk else ()


def _commands(analysis: CallAnalysis, *, has_network: bool) -> tuple[Part, ...]:
    if not analysis.commands:
        return ()
    held = analysis.boundary == "all" and not has_network
    return (_lines("commands", analysis.commands, lambda command: _command(command, held=held), "commands"),)


def _command(command: SubCommand, *, held: bool) -> str:
    words = brief(" ".join(command.words), NAME_CHARS)
    if command.read_only:
        return f"{words}: proven to only read"
    if command.edits_only:
        return f"{words}: proven to change only what it names"
    return f"{words}: not proven{'' if held else '; it may reach the network'}"


def argument_parts(arguments: str, *, whole: bool = False) -> tuple[Part, ...]:
    """Each argument of a call; what is no JSON object is one part as it came. `whole` leaves nothing out."""
    try:
        given = [(name, _as_text(value)) for name, value in (parsed(arguments) or {}).items()]
    except RecursionError:
        given = []
    given = given or [("arguments", arguments)]
    if whole:
        return tuple(Part(name=brief(name, len(name) * 10), text=told_apart(text)) for name, text in given)
    if len(given) <= MOST_PARTS:
        return tuple(_part(name, text) for name, text in given)
    head, tail = given[: MOST_PARTS * 2 // 3], given[-MOST_PARTS // 3 :]
    gone = len(given) - len(head) - len(tail)
    between = Part(name=f"{OPEN}{gone} more arguments{CLOSE}", text="", left_out=gone)
    return (*(_part(*one) for one in head), between, *(_part(*one) for one in tail))


def brief(text: str, chars: int) -> str:
    """`text` on one line with its marks, or its beginning and end."""
    return _fitted(text, chars, len(text) + 1)[0].replace("\n", _NEWLINE)


def _part(name: str, text: str) -> Part:
    fitting, left_out = _fitted(text, PART_CHARS, PART_LINES)
    return Part(name=brief(name, NAME_CHARS), text=fitting, left_out=left_out)


def _fitted(text: str, chars: int, lines: int) -> tuple[str, int]:
    """As much of the beginning and the end as fits, with its marks, and how many characters are left out."""
    if len(text) <= 2 * chars:
        shown = _marked(text)
        if len(shown) <= chars and shown.count("\n") < lines:
            return shown, 0
        head = tail = shown
        whole = len(shown)
    else:
        # Marked only as far as it can be shown: a megabyte would take seconds, and this runs in workflows.
        head, tail = _marked(text[:chars]), _marked(text[-chars:])
        whole = len(text) - 2 * chars + len(head) + len(tail)
    head = "\n".join(head.split("\n")[: max(lines * 2 // 3, 1)])[: chars * 2 // 3]
    tail = "\n".join(tail.split("\n")[-max(lines // 3, 1) :])[-(chars // 3) :]
    head = head[: head.rfind(OPEN)] if head.rfind(OPEN) > head.rfind(CLOSE) else head
    tail = tail[tail.find(CLOSE) + 1 :] if -1 < tail.find(CLOSE) < _found(tail, OPEN) else tail
    gone = whole - len(head) - len(tail)
    # On a line of its own, unless it stands within one line.
    line = "\n" if lines > 1 and "\n" in text else ""
    return f"{head}{line}{OPEN}{gone} characters are not shown here{CLOSE}{line}{tail}", gone


def _marked(text: str) -> str:
    return _BLANKS.sub(_counted_blanks, told_apart(text))


def _found(text: str, what: str) -> int:
    """Where it stands first; behind the end when it does not."""
    at = text.find(what)
    return at if at >= 0 else len(text)


def _counted_blanks(found: re.Match[str]) -> str:
    what = "empty lines" if found[0][0] == "\n" else "blanks"
    line = "\n" if found[0][0] == "\n" else ""
    return f"{line}{OPEN}{len(found[0])} {what}{CLOSE}{line}"


def _as_text(value: object) -> str:
    if isinstance(value, str):
        return value
    compact = json.dumps(value, ensure_ascii=False)
    # Indented, what nests deeply would be a thousand times as long.
    return json.dumps(value, ensure_ascii=False, indent=2) if len(compact) < INDENTED_CHARS else compact


_ONCE_APPROVED: dict[Boundary, str] = {
    "none": "there is none here, so nothing confines it",
    "off": "none, as this worker's operator wants it",
    "proven": "none: what is approved runs outside of it",
    "all": "it runs in one, where the workspace alone can be written",
}


def _findings(analysis: CallAnalysis) -> tuple[Part, ...]:
    found: list[Part] = []
    if analysis.not_understood:
        found.append(
            _part("warning", f"it contains {analysis.not_understood}, which can't be judged without running it")
        )
    if analysis.safety:
        found.append(_part("warning", f"it is dangerous: {analysis.safety}"))
    if analysis.boundary:
        problem = f": {analysis.no_boundary}" if analysis.no_boundary else ""
        found.append(_part("sandbox", f"{_ONCE_APPROVED[analysis.boundary]}{problem}"))
    if analysis.paths:
        found.append(_lines("touches", analysis.paths, _path, "paths"))
    if analysis.notice:
        shown, left_out = _fitted(analysis.notice, CHANGE_CHARS, CHANGE_CHARS)
        found.append(Part(name="change", text=shown, left_out=left_out))
    return tuple(found)


def _lines(name: str, found: Sequence[Fact], line: Callable[[Fact], str], what: str) -> Part:
    """A line each; of many the first and the last ones."""
    if len(found) <= PART_LINES:
        return Part(name=name, text="\n".join(map(line, found)))
    head, tail = found[: PART_LINES * 2 // 3], found[-PART_LINES // 3 :]
    gone = len(found) - len(head) - len(tail)
    lines = [*map(line, head), f"{OPEN}{gone} more {what}{CLOSE}", *map(line, tail)]
    return Part(name=name, text="\n".join(lines), left_out=gone)


def _path(path: PathUse) -> str:
    outside = "" if path.inside else " (outside the workspace)"
    danger = f": {brief(path.danger, NAME_CHARS)}" if path.danger else ""
    return f"{path.access} {brief(path.path, PART_CHARS)}{outside}{danger}"
