"""Arguments against a tool's schema, where they may hold a secret.

What is wrong with them is quoted in part, and half of a secret would not be known again.
"""

from typing import Any

from longhaul.activities.attempt.secret_marks import SPELT_OTHERWISE
from longhaul.activities.attempt.secrets import WorkerSecrets
from longhaul.activities.tools.arguments import ArgumentsError
from longhaul.activities.tools.registry import Toolbox


def checked(toolbox: Toolbox, secrets: WorkerSecrets, name: str, arguments: str) -> dict[str, Any]:
    """As `Toolbox.validate`; its sentence quotes marks."""
    if arguments.startswith(SPELT_OTHERWISE):
        raise ArgumentsError(
            "the arguments hold a secret that is not spelt as it is (encoded, in other letters, or within a number), "
            "so it could not be put back; nothing ran. Write [secret NAME] where the value belongs"
        )
    try:
        return toolbox.validate(name, arguments)
    except ArgumentsError as error:
        shown = secrets.marked(arguments)
        if shown == arguments:
            raise
        why = str(error)
    try:
        toolbox.validate(name, shown)
    except ArgumentsError as told:
        why = str(told)
    else:
        why = f"the arguments do not fit the schema of {name}, where they hold a secret"
    raise ArgumentsError(why)
