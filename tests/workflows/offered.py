"""What an operator may offer for agents to name: LONGHAUL_OFFLOADERS=tests.workflows.offered:shelf, and so on."""

import os
from pathlib import Path

from longhaul.activities.compression.condensers import Condensation, View
from longhaul.activities.risk_analysis import Case, Finding
from longhaul.agent.values.permission import Risk
from longhaul.stores.offload.local_workspace import LocalWorkspace

SHELF = "SHELF_OF_THE_TESTS"
"""Variable of the folder in which `shelf` keeps what it gets."""


def shelf(owner: str) -> LocalWorkspace:
    """Files of each owner in a folder of the operator's."""
    return LocalWorkspace(Path(os.environ[SHELF]) / owner)


def crate(owner: str) -> LocalWorkspace:
    """Files of all owners together."""
    del owner
    return LocalWorkspace(os.environ[SHELF])


class Forgetful:
    """A condenser."""

    async def condense(self, view: View) -> Condensation | None:
        return Condensation(view.keep_from, view.pinned)


class Trusting:
    """An analyzer."""

    async def analyze(self, case: Case) -> Finding:
        return Finding(Risk.LOW, f"{case.tool.name} looks kind")
