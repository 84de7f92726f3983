"""`longhaul rules`: list them, add some, revoke one; of a session, or of a user."""

import re
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Annotated

import typer
from pydantic import ValidationError
from rich.table import Table
from rich.text import Text

from longhaul.agent.plain.errors import what_is_wrong
from longhaul.agent.plain.measures import iso
from longhaul.agent.values.deadlines import LONGEST_SECONDS, seconds_in
from longhaul.agent.values.permission import Behavior, PermissionRule
from longhaul.agent.values.spec.known_names import without_tool
from longhaul.starter import render
from longhaul.starter.cli import options
from longhaul.starter.cli.exit_codes import Misuse
from longhaul.starter.cli.session_lookup import Name, connected, find_session
from longhaul.starter.cli.session_start import decider
from longhaul.starter.cli.terminal.screen import Screen
from longhaul.starter.client.client import Longhaul
from longhaul.starter.client.user_rules import RuleChange, RulesOfUser, SessionRules
from longhaul.starter.connection.pollers import time_at
from longhaul.starter.visible import one_line, visible

_NAMED = re.compile(r"(?P<tool>[^()\s]+)(?:\((?P<content>.*)\))?", re.DOTALL)
TABLE_CELLS = 72
"""Of a terminal: a narrower one would have columns of a few letters."""
LONG_AGO = datetime.fromtimestamp(0, UTC)
_STYLES = {Behavior.ALLOW: "green", Behavior.ASK: "yellow", Behavior.DENY: "red"}


group = options.SubjectCommands(no_args_is_help=True)

MaybeSession = Annotated[
    str | None, typer.Argument(metavar="[S]", help="Session id; left out with --user: that user's own rules.")
]
Why = Annotated[str, typer.Option(help="The reason, which is recorded.")]


@group.command("list")
async def list_rules(
    screen: Screen,
    s: MaybeSession = None,
    *,
    changes: Annotated[
        bool, typer.Option("--changes", help="Show who added and revoked which of a user's rules.")
    ] = False,
    user: options.User = None,
    agent: options.Agent = None,
) -> int:
    """List the rules of a session, or of a user.

    Example: longhaul rules list nightly
    """
    async with _rules_of(s, user, agent) as (app, rules):
        if changes and isinstance(rules, RulesOfUser):
            made = await rules.changes()
            screen.show_folded(*(_change_line(change) for change in made))
            screen.document([change.model_dump(mode="json") for change in made])
            return 0
        if changes:
            raise Misuse("--changes is for a user's rules; for a session see its events: longhaul watch S")
        found = await rules.listed()
        now = _as_iso(await time_at(app.client)) if any(rule.expires_at for rule in found) else ""
    if not found:
        screen.show(Text("no rules"))
    elif screen.width < TABLE_CELLS:
        screen.show_folded(*(line for rule in found for line in _in_lines(rule, now)))
    else:
        screen.show(_table(found, now))
    screen.document([rule.model_dump(mode="json") for rule in found])
    return 0


@group.command("add")
async def add_rules(
    screen: Screen,
    s: MaybeSession = None,
    *,
    allow: Annotated[
        list[str] | None, typer.Option(help="As in 'Bash(git push:*)', 'Write(/proj/**)', 'Bash'.")
    ] = None,
    ask: Annotated[list[str] | None, typer.Option(help="Ask a person, whatever else allows it.")] = None,
    deny: Annotated[list[str] | None, typer.Option(help="Never, whatever else allows it.")] = None,
    until: Annotated[
        str | None, typer.Option(help="When they end: a date, a time, or a duration such as 90m, 8h, 30d.")
    ] = None,
    why: Why = "",
    approver: options.As = None,
    user: options.User = None,
    agent: options.Agent = None,
) -> int:
    """Add rules to a session, or to all sessions of a user.

    Example: longhaul rules add --user ana --deny 'Bash(git push:*)' --until 2026-12-31 --why "code freeze"
    """
    typed = {Behavior.ALLOW: allow or (), Behavior.ASK: ask or (), Behavior.DENY: deny or ()}
    typed_rules(typed, until, LONG_AGO)  # what is misspelt is said without a server
    async with _rules_of(s, user, agent) as (app, book):
        rules = typed_rules(typed, until, await time_at(app.client))
        ids = await book.change(rules, by=decider(approver), why=why)
        missing = await _without_tool(book, rules)
    for rule_id, rule in zip(ids, rules, strict=True):
        screen.show(Text(one_line(f"{rule_id}  {rule.behavior.value} {rule.spelt()}")))
    for name in missing:
        holds = "its agent has no such tool" if s else "it applies to agents that have a tool of that name"
        screen.remark(Text(one_line(f"{name} is no tool of Longhaul's own: {holds}"), "yellow"))
    screen.document({"added": list(ids), **({"no_tool": list(missing)} if missing else {})})
    return 0


async def _without_tool(book: SessionRules | RulesOfUser, rules: Sequence[PermissionRule]) -> Sequence[str]:
    """Tools of these rules that the session's agent does not have; for a user's rules, that not every worker has."""
    named = [rule.tool_name for rule in rules]
    if isinstance(book, RulesOfUser):
        return without_tool(named, ())
    missing = {rule.tool_name for rule in await book.listed() if rule.no_tool}
    return [name for name in dict.fromkeys(named) if name in missing]


def typed_rules(typed: Mapping[Behavior, Sequence[str]], until: str | None, now: datetime) -> list[PermissionRule]:
    """Rules as they were typed; `now`: by the clock of whoever ends them. Raises Misuse."""
    ends = "" if until is None else end_of(until, now)
    rules = [_rule(name, behavior, ends) for behavior, names in typed.items() for name in names]
    if not rules:
        raise Misuse("there is no rule; give some by --allow, --ask or --deny, as in --deny 'Bash(git push:*)'")
    return rules


@group.command("revoke")
async def revoke_rule(
    screen: Screen,
    words: Annotated[
        list[str], typer.Argument(metavar="[S] ID", help="The session and the rule's id; with --user only the id.")
    ],
    *,
    why: Why = "",
    approver: options.As = None,
    user: options.User = None,
    agent: options.Agent = None,
) -> int:
    """Revoke a rule; waiting calls are checked against the remaining rules.

    Example: longhaul rules revoke nightly 3kD9xA2f --why "the migration is done"
    """
    if len(words) > 2 or (len(words) == 1 and user is None):
        raise Misuse("name the session and the rule's id, or --user and the id: longhaul rules revoke S ID")
    async with _rules_of(words[0] if len(words) == 2 else None, user, agent) as (_, rules):
        await rules.change(revoke=[words[-1]], by=decider(approver), why=why)
    screen.show(Text(one_line(f"revoked {words[-1]}")))
    screen.document({"revoked": [words[-1]]})
    return 0


@asynccontextmanager
async def _rules_of(
    session_id: str | None, user: str | None, agent: str | None
) -> AsyncIterator[tuple[Longhaul, SessionRules | RulesOfUser]]:
    """A session's rules, or those of a user where no session is named."""
    if session_id is None:
        if user is None:
            raise Misuse("name a session, or a user by --user")
        async with connected() as app:
            yield app, app.rules_of(user)
        return
    async with connected() as app:
        yield app, (await find_session(app, Name(session_id, user, agent))).rules


def _rule(name: str, behavior: Behavior, ends: str) -> PermissionRule:
    match = _NAMED.fullmatch(name.strip())
    if match is None:
        raise Misuse(f"--{behavior.value}: {name!r} is no rule; write TOOL or TOOL(PATTERN), as in 'Bash(git push:*)'")
    content = match["content"]
    return PermissionRule(tool_name=match["tool"], rule_content=content, behavior=behavior, expires_at=ends)


def end_of(until: str, now: datetime) -> str:
    """A moment, from a date, a time, or how long it is to last from `now` on. Raises Misuse."""
    ends = _moment(until, now)
    if ends and ends <= _as_iso(now):
        raise Misuse(f"--until: {until!r} is past, so the rule would never count; write a later time, or 90m, 8h, 30d")
    return ends


def _moment(until: str, now: datetime) -> str:
    if (seconds := seconds_in(until)) is not None:
        if seconds > LONGEST_SECONDS:
            raise Misuse(f"--until: {until!r} is more than ten years; write a shorter duration, or a date")
        return (now + timedelta(seconds=seconds)).isoformat(timespec="milliseconds")
    try:
        return PermissionRule(tool_name="Bash", expires_at=until).expires_at
    except ValidationError as error:
        raise Misuse(f"--until: {what_is_wrong(error)}; or write a duration such as 90m, 8h, 30d") from None


def _as_iso(moment: datetime) -> str:
    return iso(int(moment.timestamp() * 1000))


def _table(rules: Sequence[PermissionRule], now: str) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim")
    for column in ("id", "", "rule", "scope", "by", "why", "until"):
        table.add_column(column, overflow="fold")
    for rule in rules:
        table.add_row(
            Text(_line(rule.id)),
            Text(rule.behavior.value, _STYLES[rule.behavior]),
            Text.assemble(_line(rule.spelt()), (" (no such tool)" if rule.no_tool else "", "yellow")),
            Text(rule.scope.value if rule.scope else ""),
            Text(_line(rule.author or rule.source)),
            Text(_line(rule.reason)),
            Text(_until(rule, now)),
        )
    return table


def _in_lines(rule: PermissionRule, now: str) -> Iterator[Text]:
    """One rule where a table has no room; the id alone, for it is copied."""
    yield Text.assemble(_line(rule.id), " ", (rule.behavior.value, _STYLES[rule.behavior]))
    yield Text.assemble("  ", _line(rule.spelt()), (" (no such tool)" if rule.no_tool else "", "yellow"))
    scope, until = rule.scope.value if rule.scope else "", _until(rule, now)
    by = _line(rule.author or rule.source)
    told = [scope, by and f"by {by}", until if until.startswith("expired") else until and f"until {until}"]
    why = f": {_line(rule.reason)}" if rule.reason else ""
    yield Text(f"  {', '.join(filter(None, told))}{why}", "dim")


def _until(rule: PermissionRule, now: str) -> str:
    if not rule.expires_at:
        return ""
    shown = render.when(rule.expires_at)
    return f"expired {shown}" if rule.expires_at <= now else shown


def _change_line(change: RuleChange) -> Text:
    told = [f"+ {rule.behavior.value} {rule.spelt()}" for rule in change.added]
    told += [f"- {rule.behavior.value} {rule.spelt()}" for rule in change.revoked]
    who = change.by or "somebody"
    why = f": {change.why}" if change.why else ""
    return Text(_line(f"{render.when(change.at)}  {who}  {', '.join(told)}{why}"))


def _line(text: str) -> str:
    return one_line(visible(text))
