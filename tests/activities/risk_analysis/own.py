"""Analyzers of an operator's own, as LONGHAUL_ANALYZERS names them."""

from longhaul.activities.risk_analysis import Case, Finding
from longhaul.agent.values.permission import Risk


class Suspicious:
    """Finds every operation to Eve risky."""

    async def analyze(self, case: Case) -> Finding:
        to_eve = "Eve" in case.arguments
        return Finding(Risk.HIGH if to_eve else Risk.LOW, "it is for Eve" if to_eve else "it is for a friend")


nothing = object()
