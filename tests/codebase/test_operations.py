"""One row an operation: what people call, type and post to send it is there, and stands on the page about steering."""

from collections.abc import Callable
from inspect import Parameter, getdoc, signature
from operator import attrgetter
from pathlib import Path
from typing import Any

import pytest
import typer

from longhaul.agent.operations.all_operations import NAMES, OPERATION_ROWS, OperationRow
from longhaul.starter.cli.main import app
from longhaul.starter.client.session import Session
from longhaul.starter.client.states.state_operations import Stored
from longhaul.starter.client.user_rules import SessionRules
from longhaul.starter.serve.reads import READS, ReadRow
from longhaul.starter.serve.request_bodies import Whose
from longhaul.starter.serve.routes import OPERATIONS, SPELT_OUT, S

PAGE = (Path(__file__).parents[2] / "docs" / "people" / "steering.md").read_text(encoding="utf-8")
BY_PEOPLE = [row for row in OPERATION_ROWS if row.method]
BY_OTHERS = {"worker_left", "worker_lacks", "child_reported", "report_again", "ask", "hub_says"}
"""What workers send of themselves, and the sessions of a tree to each other."""
NO_COMMAND = {"configure"}
"""A session's settings are changed from code and over HTTP."""
PARTS = {"rules": SessionRules, "stored": Stored}
NO_OPERATIONS = {f"{S}/state/edits", f"{S}/copies", f"{S}/decisions/all", "/v1/memories/delete", "/v1/knowledge/delete"}
"""Routes that read, and then send `replace_state`, or one `confirm` for several calls; and those about no session."""


def called(row: OperationRow[Any]) -> Callable[..., Any]:
    part, _, name = row.method.rpartition(".")
    method: Callable[..., Any] = attrgetter(name)(PARTS[part] if part else Session)
    return method


def commands() -> set[str]:
    """As they are typed: `rules add`."""
    found: set[str] = set()
    whole: Any = typer.main.get_command(app)
    for name, command in whole.commands.items():
        found |= {f"{name} {inner}" for inner in getattr(command, "commands", {})} or {name}
    return found


def line(row: OperationRow[Any]) -> str:
    typed = ", ".join(f"`longhaul {command}`" for command in row.commands)
    return f"| `{row.name}` | {row.help} | `session.{row.method}` | {typed} | `POST …/{row.path}` |"


@pytest.mark.parametrize("row", BY_PEOPLE, ids=lambda row: row.name)
def test_whoever_may_send_an_operation_finds_how(row: OperationRow[Any]) -> None:
    assert callable(called(row)), row.method
    assert getdoc(called(row)), row.method
    assert set(row.commands) <= commands()
    assert bool(row.commands) or row.name in NO_COMMAND
    (route,) = (one for one in OPERATIONS if (one.method, one.path) == ("POST", f"{S}/{row.path}"))
    assert route.summary == row.help
    assert line(row) in PAGE.splitlines()


def test_all_operations_but_those_of_workers_are_for_people() -> None:
    assert {row.name for row in BY_PEOPLE} == set(NAMES) - BY_OTHERS
    assert len({row.name for row in BY_PEOPLE}) == len(BY_PEOPLE) == 16


@pytest.mark.parametrize("row", [row for row in BY_PEOPLE if f"{S}/{row.path}" not in {one.path for one in SPELT_OUT}])
def test_an_operation_without_a_line_of_its_own_is_sent_by_its_method_with_the_bodys_fields(
    row: OperationRow[Any],
) -> None:
    (route,) = (one for one in OPERATIONS if (one.method, one.path) == ("POST", f"{S}/{row.path}"))
    taken = signature(called(row)).parameters

    assert "by_operation" in route.handler.__qualname__
    assert route.answers == ({204: None} if row.answer is None else {200: row.answer})
    assert (route.scope, route.body) == (row.scope, row.body)
    assert any(one.kind is Parameter.VAR_KEYWORD for one in taken.values()) or (
        row.body.model_fields.keys() - row.from_sessions <= taken.keys()
    )
    assert row.answer is None or len(row.answer.model_fields) == 1


def test_each_route_that_changes_a_session_sends_an_operation() -> None:
    posted = {one.path for one in OPERATIONS if one.method == "POST" and one.path.startswith(S)}

    assert posted - NO_OPERATIONS == {f"{S}/{row.path}" for row in BY_PEOPLE}


def test_the_page_has_no_further_operations() -> None:
    table = [each for each in PAGE.splitlines() if "`POST …/" in each]

    assert table == [line(row) for row in BY_PEOPLE]


@pytest.mark.parametrize("row", READS, ids=lambda row: row.path)
def test_a_read_asks_its_method_for_what_its_query_holds(row: ReadRow) -> None:
    part, _, name = row.method.rpartition(".")
    method = attrgetter(name)(PARTS[part] if part else Session)

    assert row.query.model_fields.keys() - Whose.model_fields.keys() == signature(method).parameters.keys() - {"self"}
