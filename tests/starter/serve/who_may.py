"""Says who may call what of `longhaul serve` and of the console, and sends each route what strangers might."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from longhaul.starter.console.site import CONTENT_SECURITY_POLICY

SESSION, PAGE = "/v1/sessions/{agent}/{session}", "/console/s/{agent}/{session}"
ANYBODY, SIGNATURE, TOKEN = "anybody", "signature", "token"
WHO_MAY: dict[str, str] = {
    ANYBODY: """
        GET / health ready
        GET,HEAD / openapi.json console/static/{name}
        GET,HEAD,POST /console/ sign-in
    """,
    SIGNATURE: "POST /v1/webhooks/ {hook}",
    TOKEN: "POST / mcp",
    "read": f"""
        GET /v1/ sessions inbox standing last-day hubs hubs/{{hub}} schedules schedules/{{schedule}} memories
        GET {SESSION}/ status pending would-pass tools tasks transcript context history run events rules state
        GET {SESSION}/ result/{{reply_id}}
        GET,HEAD /console . /sessions /start
        GET,HEAD {PAGE} . /call /calls /edit /about /run /timeline /context /log /change /state
        GET {PAGE} /events
        POST /console /sign-out
    """,
    "answer": f"""
        POST /v1/ hubs hubs/{{hub}}/say hubs/{{hub}}/join hubs/{{hub}}/leave hubs/{{hub}}/end schedules
        POST /v1/schedules/{{schedule}}/ pause resume trigger remove
        POST {SESSION}/ messages external-results interrupt stop-background observe notify
    """,
    "approve": f"POST {SESSION}/ decisions decisions/all resolve",
    "steer": f"""
        POST {SESSION}/ configure compact pause step resume budget rules state state/edits copies
        POST /v1/memories/ delete
    """,
    "admin": "GET /v1/ workers",
    "read admin": """
        GET /v1/ knowledge knowledge/passages
        GET,HEAD /console/ workers
    """,
    "steer admin": "POST /v1/knowledge/ delete",
    "read answer": f"""
        POST /console /start
        POST {PAGE} /say /result /answer /notify /interrupt /stop-background
    """,
    "read approve": f"POST {PAGE} /decide /calls /resolve",
    "read approve edit": f"POST {PAGE} /edit",
    "read steer": f"""
        POST {PAGE} /pause /resume /step
        POST {PAGE}/change/ settings add-rule revoke-rule budget compact copy
    """,
}
"""By who may: lines of methods, the beginning of paths, and their ends (`.` is none). Several scopes: all of them."""


class Row(NamedTuple):
    """One method of one path."""

    method: str
    path: str
    scopes: tuple[str, ...]
    """Or, alone, ANYBODY, SIGNATURE or TOKEN."""

    @property
    def is_page(self) -> bool:
        return self.path.startswith("/console")

    @property
    def is_open(self) -> bool:
        return self.scopes == (ANYBODY,)

    def at(self, **names: str) -> str:
        """Its path with these names in it, and others where none is given."""
        usual = {"agent": "lamp", "session": "night", "schedule": "dusk", "hub": "club", "reply_id": "r", "hook": "h"}
        return self.path.format(**{**usual, "name": "console.js", **names})


def _rows(scopes: str, text: str) -> Iterator[Row]:
    for line in text.strip().splitlines():
        methods, start, *ends = line.split()
        for end in ends:
            for method in methods.split(","):
                yield Row(method, start + end.removeprefix("."), tuple(scopes.split()))


ROWS = tuple(row for scopes, text in WHO_MAY.items() for row in _rows(scopes, text))


def paths_of(routes: Iterable[object], before: str = "") -> Iterator[str]:
    """Every path under which something answers, also below what is mounted; a mount that holds no routes is one."""
    for route in routes:
        path = before + str(getattr(route, "path", f"?{route!r}"))
        if below := getattr(route, "routes", None):
            yield from paths_of(below, path)
        else:
            yield path


def headers_wrong(row: Row, headers: dict[str, str]) -> list[str]:
    """Which headers of an answer are not as they have to be, refusals included."""
    policies = {"default-src 'none'; frame-ancestors 'none'", *((CONTENT_SECURITY_POLICY,) if row.is_page else ())}
    wanted = {
        "content-security-policy": policies,
        "x-frame-options": {"DENY"},
        "x-content-type-options": {"nosniff"},
        "cross-origin-resource-policy": {"same-origin"},
        "cache-control": {"no-store", *(("no-cache",) if "/static/" in row.path else ())},
    }
    return [f"{name}: {headers.get(name)}" for name, values in wanted.items() if headers.get(name) not in values]
