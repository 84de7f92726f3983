"""Other arguments that a middleware wants a call to run with: looked at like a model's, and decided on before they run."""

from typing import Protocol

from longhaul.activities.attempt.secrets import WorkerSecrets
from longhaul.activities.examine_calls import Examination
from longhaul.activities.middlewares.middleware import Stopped
from longhaul.activities.tool import NeedsDecision, Place, Tool
from longhaul.activities.tools.arguments import ArgumentsError
from longhaul.activities.tools.marked_arguments import checked
from longhaul.activities.tools.registry import Toolbox

LONGEST_CHARS = 200_000
"""They are recorded whole, in the session's history."""


class Started(Protocol):
    """The call as it was decided on."""

    @property
    def toolbox(self) -> Toolbox: ...
    @property
    def tool(self) -> Tool: ...
    @property
    def place(self) -> Place: ...
    @property
    def arguments(self) -> str: ...


class ChangedArguments:
    def __init__(self, examination: Examination, secrets: WorkerSecrets) -> None:
        self._examination, self._secrets = examination, secrets

    async def judged(self, call: Started, wanted: str) -> None:
        """Raises NeedsDecision with the findings about other arguments than the call's, and Stopped for what no call
        may have: then nothing ran."""
        if wanted == call.arguments:
            return
        if self._secrets.masker.found(call.arguments) or self._secrets.masker.found(wanted):
            # They would be recorded; and what is recorded with a mark would not be known again as the same.
            raise Stopped("arguments with a secret in them can't be changed")
        if len(wanted) > LONGEST_CHARS:
            raise Stopped(f"the changed arguments have more than {LONGEST_CHARS:,} characters")
        try:
            checked(call.toolbox, self._secrets, call.tool.name, wanted)
        except ArgumentsError as error:
            raise Stopped(f"the changed arguments do not fit: {error}") from None
        facts = await self._examination.look(call.tool.name, wanted, call.place, call.toolbox)
        raise NeedsDecision(facts, "a middleware has changed the arguments", wanted)
