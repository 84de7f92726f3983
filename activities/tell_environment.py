"""tell_environment: what the worker has around it, for `longhaul doctor`, which may run elsewhere."""

import asyncio
import os
from collections.abc import Iterable
from importlib.metadata import PackageNotFoundError, version

from temporalio import activity

from longhaul.activities.contract import TELL_ENVIRONMENT, WorkerEnvironment
from longhaul.activities.process.container import image_problem
from longhaul.activities.process.sandbox import Box, bwrap_problem
from longhaul.activities.tools.ripgrep import find_ripgrep

PROVIDER_KEYS = ("ANTHROPIC_API_KEY", "OPENAI_API_KEY")


class Surroundings:
    """`keys`: variables beside those of the providers that we know, as the operator has named them."""

    def __init__(self, keys: Iterable[str], box: Box) -> None:
        self._box = box
        self._keys = sorted({*PROVIDER_KEYS, *keys})

    @activity.defn(name=TELL_ENVIRONMENT)
    async def tell_environment(self) -> WorkerEnvironment:
        """Names of keys alone: a value would stand in the history."""
        return WorkerEnvironment(
            release=_release(),
            keys=tuple(name for name in self._keys if os.environ.get(name, "").strip()),
            ripgrep=str(await asyncio.to_thread(find_ripgrep) or ""),
            sandbox=await asyncio.to_thread(bwrap_problem) or "",
            images={image.name: await image_problem(image, self._box.limits) for image in self._box.images},
        )


def _release() -> str:
    try:
        return version("longhaul-agents")
    except PackageNotFoundError:
        return ""
