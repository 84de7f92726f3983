"""The table of docs/making/request_rules.md. It is printed by
`python -m tests.activities.models.published.published_page`."""

from collections.abc import Sequence

from tests.activities.models import published_converse, published_google
from tests.activities.models.published import published_chat, published_messages, published_responses
from tests.activities.models.published.published import SERVERS, Rule

RULES = (
    *published_messages.RULES,
    *published_responses.RULES,
    *published_chat.RULES,
    *published_google.RULES,
    *published_converse.RULES,
)


def table() -> str:
    """A row for each rule, by its name; a server that has none such has a dash."""
    rows: dict[str, list[Rule]] = {}
    for rule in RULES:
        rows.setdefault(rule.name, []).append(rule)
    lines = [_row(name, rules) for name, rules in rows.items()]
    return "\n".join([f"| rule | {' | '.join(SERVERS)} | published at |", f"|{'---|' * (len(SERVERS) + 2)}", *lines])


def _row(name: str, rules: Sequence[Rule]) -> str:
    cells = [_cell([rule for rule in rules if server in rule.servers]) for server in SERVERS]
    sources = ", ".join(dict.fromkeys(f"[{_host(rule.source)}](https://{rule.source}) {rule.date}" for rule in rules))
    return f"| {name} | {' | '.join(cells)} | {sources} |"


def _cell(rules: Sequence[Rule]) -> str:
    if not rules:
        return "-"
    return "in words" if any(rule.asked_again for rule in rules) else "met"


def _host(source: str) -> str:
    parts = source.split("/")
    return "/".join(parts[1:3]) if parts[0] == "github.com" else parts[0]


if __name__ == "__main__":
    print(table())
