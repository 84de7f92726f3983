"""What the commands about rules do: list them, add some, revoke one; of a session, or of a user."""

import re
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from pydantic import ValidationError
from rich.table import Table
from rich.text import Text

from agent.bodies import what_is_wrong
from agent.permission.rules import Behavior, PermissionRule
from agent.times import iso
from starter.cli.finding import Name, connected, find_session
from starter.cli.leaving import Misuse
from starter.cli.opening import whoami
from starter.cli.screen import Screen
from starter.client import Longhaul
from starter.render import rule_name
from starter.rules import RuleChange, RulesOfUser, SessionRules
from starter.settings import Settings
from starter.visible import one_line, visible

_NAMED = re.compile(r"(?P<tool>[^()\s]+)(?:\((?P<content>.*)\))?", re.DOTALL)
_WHILE = re.compile(r"(\d{1,6})([mhd])")
_UNITS = {"m": "minutes", "h": "hours", "d": "days"}
_STYLES = {Behavior.ALLOW: "green", Behavior.ASK: "yellow", Behavior.DENY: "red"}


@dataclass(frozen=True, slots=True)
class Whose:
    """A session's rules, or those of a user where no session is named."""

    session_id: str | None
    user: str | None = None
    agent: str | None = None


@dataclass(frozen=True, slots=True)
class Said:
    why: str
    approver: str | None

    @property
    def by(self) -> str:
        return whoami() if self.approver is None else self.approver


@dataclass(frozen=True, slots=True)
class Given:
    """Rules as they were typed."""

    allow: tuple[str, ...]
    ask: tuple[str, ...]
    deny: tuple[str, ...]
    until: str | None
    why: str
    approver: str | None

    def rules(self) -> list[PermissionRule]:
        """Raises Misuse."""
        ends = "" if self.until is None else end_of(self.until)
        typed = [(Behavior.ALLOW, self.allow), (Behavior.ASK, self.ask), (Behavior.DENY, self.deny)]
        rules = [_rule(name, behavior, ends) for behavior, names in typed for name in names]
        if not rules:
            raise Misuse("there is no rule; give some by --allow, --ask or --deny, as in --deny 'Bash(git push:*)'")
        return rules


async def list_rules(screen: Screen, whose: Whose, *, changes: bool) -> int:
    async with _rules_of(whose) as rules:
        if changes and isinstance(rules, RulesOfUser):
            made = await rules.changes()
            screen.show(*(_change_line(change) for change in made))
            screen.document([change.model_dump(mode="json") for change in made])
            return 0
        if changes:
            raise Misuse("--changes is for a user's rules; those of a session stand in its events: longhaul watch S")
        found = await rules.listed()
    screen.show(_table(found, iso(int(datetime.now(UTC).timestamp() * 1000))) if found else Text("no rules"))
    screen.document([rule.model_dump(mode="json") for rule in found])
    return 0


async def add_rules(screen: Screen, whose: Whose, given: Given) -> int:
    rules = given.rules()
    said = Said(given.why, given.approver)
    async with _rules_of(whose) as book:
        ids = await book.change(rules, by=said.by, why=said.why)
    for rule_id, rule in zip(ids, rules, strict=True):
        screen.show(Text(one_line(f"{rule_id}  {rule.behavior.value} {rule_name(rule)}")))
    screen.document({"added": list(ids)})
    return 0


async def revoke_rule(screen: Screen, words: Sequence[str], user: str | None, agent: str | None, said: Said) -> int:
    """`S ID`, or with a user `ID` alone."""
    if len(words) > 2 or (len(words) == 1 and user is None):
        raise Misuse("name the session and the rule's id, or --user and the id: longhaul rules revoke S ID")
    whose = Whose(words[0] if len(words) == 2 else None, user, agent)
    async with _rules_of(whose) as rules:
        await rules.change(revoke=[words[-1]], by=said.by, why=said.why)
    screen.show(Text(one_line(f"revoked {words[-1]}")))
    screen.document({"revoked": [words[-1]]})
    return 0


@asynccontextmanager
async def _rules_of(whose: Whose) -> AsyncIterator[SessionRules | RulesOfUser]:
    if whose.session_id is None:
        if whose.user is None:
            raise Misuse("name a session, or a user by --user")
        # No server is needed: they stand in the state store.
        yield RulesOfUser(Settings(), whose.user)
        return
    async with connected() as app:
        yield await _of_session(app, Name(whose.session_id, whose.user, whose.agent))


async def _of_session(app: Longhaul, name: Name) -> SessionRules:
    return (await find_session(app, name)).rules


def _rule(name: str, behavior: Behavior, ends: str) -> PermissionRule:
    match = _NAMED.fullmatch(name.strip())
    if match is None:
        raise Misuse(f"--{behavior.value}: {name!r} is no rule; write TOOL or TOOL(PATTERN), as in 'Bash(git push:*)'")
    content = match["content"]
    return PermissionRule(tool_name=match["tool"], rule_content=content, behavior=behavior, expires_at=ends)


def end_of(until: str) -> str:
    """A moment, from a date, a time, or how long it is to last. Raises Misuse."""
    if match := _WHILE.fullmatch(until):
        left = timedelta(**{_UNITS[match[2]]: int(match[1])})
        return (datetime.now(UTC) + left).isoformat(timespec="milliseconds")
    try:
        return PermissionRule(tool_name="Bash", expires_at=until).expires_at
    except ValidationError as error:
        raise Misuse(f"--until: {what_is_wrong(error)}; or write a while as in 90m, 8h, 30d") from None


def _table(rules: Sequence[PermissionRule], now: str) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim")
    for column in ("id", "", "rule", "scope", "by", "why", "until"):
        table.add_column(column, overflow="fold")
    for rule in rules:
        table.add_row(
            Text(_line(rule.id)),
            Text(rule.behavior.value, _STYLES[rule.behavior]),
            Text(_line(rule_name(rule))),
            Text(rule.scope.value if rule.scope else ""),
            Text(_line(rule.author or rule.source)),
            Text(_line(rule.reason)),
            Text(_until(rule, now)),
        )
    return table


def _until(rule: PermissionRule, now: str) -> str:
    if not rule.expires_at:
        return ""
    shown = rule.expires_at[:16].replace("T", " ")
    return f"expired {shown}" if rule.expires_at <= now else f"{shown} UTC"


def _change_line(change: RuleChange) -> Text:
    told = [f"+ {rule.behavior.value} {rule_name(rule)}" for rule in change.added]
    told += [f"- {rule.behavior.value} {rule_name(rule)}" for rule in change.revoked]
    who = change.by or "somebody"
    why = f": {change.why}" if change.why else ""
    return Text(_line(f"{change.at[:16].replace('T', ' ')}  {who}  {', '.join(told)}{why}"))


def _line(text: str) -> str:
    return one_line(visible(text))
