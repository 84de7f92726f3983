"""The page on which a session is changed: its settings, rules, budget and context; and on which a copy of it begins."""

import asyncio
import secrets
from collections.abc import Awaitable, Callable, Mapping
from typing import Any
from urllib.parse import quote

from starlette.responses import HTMLResponse, Response
from starlette.types import ASGIApp

from longhaul.agent.operations.answers import Compacted
from longhaul.agent.values.permission import Behavior, PermissionMode
from longhaul.starter.console.changes import or_told, then
from longhaul.starter.console.console_request import Visit
from longhaul.starter.console.pages import page
from longhaul.starter.console.transcript import marked
from longhaul.starter.serve.problems import Problem, wrong
from longhaul.starter.serve.requests import path_values
from longhaul.starter.serve.response_bodies import Copied, RulesBody
from longhaul.starter.visible import harmless
from longhaul.workflows.contract import Status

MOST_RULES = 50
"""On the page; all of them stand in `longhaul rules list`."""
LIMITS = ("tokens", "cost", "calls", "steps", "seconds")

Form = Mapping[str, str]


async def change(visit: Visit) -> ASGIApp:
    return await change_page(visit)


async def change_page(visit: Visit, problem: Problem | None = None) -> HTMLResponse:
    """The page; after a refusal with what was written."""
    status: Status
    rules: RulesBody
    status, rules = await asyncio.gather(visit.ask("status"), visit.ask("rules"))
    return await page(
        "change",
        visit,
        problem.status if problem else 200,
        status=status,
        written={"entry": visit.request.query_params.get("entry", ""), **visit.form},
        modes=[mode.value for mode in PermissionMode],
        behaviors=[behavior.value for behavior in Behavior],
        rules=[(one.id, f"{one.behavior.value} {marked(one.spelt())}") for one in rules.rules[:MOST_RULES]],
        rules_left_out=max(len(rules.rules) - MOST_RULES, 0),
        budget=list(status.budget.lines()) if status.budget else [],
        limits=LIMITS,
        request_id=secrets.token_hex(16),
        problem=harmless(problem.detail) if problem else None,
    )


async def export(visit: Visit) -> ASGIApp:
    """The state as a file."""
    answer: Response = await visit.ask("state")
    name = quote(path_values(visit.request.path_params)["session"], safe="")
    answer.headers["content-disposition"] = f"attachment; filename*=UTF-8''{name}.json"
    return answer


def filled_in(name: str) -> Callable[[Visit], Awaitable[Response]]:
    """What the form of that name does."""

    async def changed(visit: Visit) -> Response:
        return await or_told(lambda: FORMS[name](visit), lambda problem: change_page(visit, problem))

    return changed


async def _settings(visit: Visit) -> Response:
    await visit.ask("configure", body=_given(visit.form, "mode", "model", "max_iters"))
    return _done(visit)


async def _add_rule(visit: Visit) -> Response:
    rule = _given(visit.form, "tool_name", "rule_content", "behavior", "expires_at")
    if "rule_content" not in rule and not visit.form.get("every"):
        raise wrong("rule_content", "", "name a command or files, or tick that the rule is for every call of the tool")
    await visit.ask("changeRules", body={"add": [rule], "why": visit.form.get("why", "")})
    return _done(visit)


async def _revoke_rule(visit: Visit) -> Response:
    await visit.ask("changeRules", body={"revoke": [visit.form.get("id", "")], "why": visit.form.get("why", "")})
    return _done(visit)


async def _more_budget(visit: Visit) -> Response:
    body = {"more": _given(visit.form, *LIMITS), **_given(visit.form, "end", "request_id")}
    await visit.ask("changeBudget", body=body)
    return _done(visit)


async def _compact(visit: Visit) -> Response:
    made: Compacted = await visit.ask("compact", body=_given(visit.form, "instructions"))
    return _done(visit, "shorter" if made.compacted else "as-it-was")


async def _copy(visit: Visit) -> Response:
    made: Copied
    _, made = await visit.ask("copy", body=_given(visit.form, "session", "entry"))
    return then(visit.beside(made.session_id))


FORMS: Mapping[str, Callable[[Visit], Awaitable[Response]]] = {
    "settings": _settings,
    "add-rule": _add_rule,
    "revoke-rule": _revoke_rule,
    "budget": _more_budget,
    "compact": _compact,
    "copy": _copy,
}


def _given(form: Form, *names: str) -> dict[str, Any]:
    """What was filled in: an empty field changes nothing."""
    return {name: value for name in names if (value := form.get(name, "").strip())}


def _done(visit: Visit, told: str = "changed") -> Response:
    return then(visit.here("change", told=told))
