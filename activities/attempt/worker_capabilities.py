"""The capabilities of this worker: what its operator offers to agents, its own keys, and steps that no worker can
take.

Compares what an agent names with what the operator of this worker offers, before a reply begins.

What every worker has is checked where an agent is made (`agent.values.spec.known_names`); tools, middlewares, skills
and templates are looked for where they are loaded.

Finds the worker's own keys and passwords, which are as secret as those that its operator names for agents.

Nobody is given them, and they are cut out of whatever leaves an activity like the others.

A step that no worker can take is told to its session within seconds, while others are still asked.
"""

import asyncio
import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from urllib.parse import urlsplit

from temporalio import activity
from temporalio.exceptions import ApplicationError
from temporalio.worker import ActivityInboundInterceptor, ExecuteActivityInput, Interceptor

from longhaul.activities.attempt import own_session
from longhaul.activities.attempt.call_attempts import call_id_of
from longhaul.activities.attempt.workspaces import not_here
from longhaul.activities.contract import NOT_HERE
from longhaul.activities.models.profiles import NO_VARIABLES, KeyPlace, no_profile
from longhaul.activities.models.providers import PROVIDERS
from longhaul.agent.operations.bodies import WORKER_LACKS
from longhaul.agent.permission.decision_table import analyzers_of
from longhaul.agent.plain.text import LONGEST_NAME, did_you_mean
from longhaul.agent.values.spec.agent_spec import AgentSpec
from longhaul.agent.values.spec.known_names import ANALYZERS, CONDENSERS, OFFLOADERS, is_profile_name
from longhaul.stores.keys.keyring import SERVICES


@dataclass(frozen=True, slots=True)
class Offered:
    """Names that agents may use on this worker."""

    offloaders: tuple[str, ...] = OFFLOADERS
    condensers: tuple[str, ...] = CONDENSERS
    analyzers: tuple[str, ...] = ANALYZERS
    profiles: tuple[str, ...] = ()
    """Of models; an agent may have others of its own."""
    postprocessors: tuple[str, ...] = ()
    custom_agents: tuple[str, ...] = ()
    images: tuple[str, ...] = ()

    def check(self, spec: AgentSpec) -> None:
        """Raises NotHere for the first name that this worker does not have."""
        _check("postprocessor", spec.postprocess.values(), self.postprocessors, "LONGHAUL_TOOLS")
        _check("custom agent", [spec.custom_agent] if spec.custom_agent else [], self.custom_agents, "LONGHAUL_TOOLS")
        _check("image", [spec.seal.image] if spec.seal and spec.seal.image else [], self.images, "LONGHAUL_IMAGES")
        _check("offloader", [spec.offloader], self.offloaders, "LONGHAUL_OFFLOADERS")
        _check("condenser", spec.context_config.condensers, self.condensers, "LONGHAUL_CONDENSERS")
        _check_models([name for name in spec.named_models if is_profile_name(name)], (*spec.models, *self.profiles))
        _check("analyzer", analyzers_of(spec.permission), self.analyzers, "LONGHAUL_ANALYZERS")


def _check_models(names: Iterable[str], offered: tuple[str, ...]) -> None:
    for name in names:
        if name not in offered:
            raise not_here(no_profile(name, offered))


def _check(kind: str, names: Iterable[str], offered: tuple[str, ...], setting: str) -> None:
    for name in names:
        if name not in offered:
            setting = "LONGHAUL_REDIS_URL" if name == "redis" else setting
            hint = did_you_mean(name, offered, "they have")
            raise not_here(
                f"no {kind} is named {name[:LONGEST_NAME]!r} on the workers that were asked ({setting}); {hint}"
            )


SHORTEST_CHARACTERS = 8
"""A shorter one could be guessed, or is a word such as `none`: cut out, it would take harmless text along."""
_OTHERS = (
    *("ANTHROPIC_AUTH_TOKEN", "OPENAI_ADMIN_KEY", "TEMPORAL_API_KEY", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"),
    *("VAULT_TOKEN", "AZURE_CLIENT_SECRET", "AZURE_CLIENT_CERTIFICATE_PASSWORD", "AZURE_PASSWORD", "IDENTITY_HEADER"),
)
_PAIRS = ("LONGHAUL_APPROVAL_KEY", "LONGHAUL_MASTER_KEY")
"""Of names and keys, separated by commas."""
_ADDRESSES = ("LONGHAUL_REDIS_URL", "LONGHAUL_STORE", "LONGHAUL_BLOBS", "LONGHAUL_KEYS", "LONGHAUL_NOTIFY")


def own_keys(environ: Mapping[str, str], places: Iterable[KeyPlace], settings: Mapping[str, str]) -> dict[str, str]:
    """Values by the names of their variables. `settings`: as the operator set them, by variable, from wherever."""
    known = {**environ, **{name: value for name, value in settings.items() if value}}
    names = {provider.key_env for provider in PROVIDERS.values()} | {place.key_env for place in places}
    found = {name: known.get(name, "") for name in [*sorted(names - {"", *NO_VARIABLES}), *_OTHERS, "LONGHAUL_ID_KEY"]}
    for variable in _PAIRS:
        setting = known.get(variable, "")
        for number, pair in enumerate(() if setting.startswith("file:") else setting.split(",")):
            name, _, key = pair.partition(":")
            found[f"{variable}{f'_{number}' if number else ''}"] = "" if name in SERVICES else key
    for name in _ADDRESSES:
        address = known.get(name, "")
        try:
            found[f"{name}_PASSWORD"] = urlsplit(address).password or ""
        except ValueError:
            found[f"{name}_PASSWORD"] = ""
    kept = {name: value.strip() for name, value in found.items()}
    return {name: value for name, value in kept.items() if len(value) >= SHORTEST_CHARACTERS}


log = logging.getLogger(__name__)

TOLD_AT = (8, 20)
"""Attempts: a good second after the first, by when each worker was likely asked; and once more in case that the
first word was lost. A session that heard it before records nothing."""
TELL_SECONDS = 3
LONGEST_WHY = 2_000


class Lacking(Interceptor):
    def intercept_activity(self, next: ActivityInboundInterceptor) -> ActivityInboundInterceptor:  # noqa: A002  the SDK's name
        return _Telling(next)


class _Telling(ActivityInboundInterceptor):
    async def execute_activity(self, input: ExecuteActivityInput) -> Any:  # noqa: A002  the SDK's name
        try:
            return await super().execute_activity(input)
        except ApplicationError as error:
            if error.type == NOT_HERE and activity.info().attempt in TOLD_AT:
                await _tell_session(input, error.message)
            raise


async def _tell_session(input: ExecuteActivityInput, why: str) -> None:  # noqa: A002  the SDK's name
    worker, doing = activity.client().identity, activity.info().activity_type
    lacks = {
        "worker": worker,
        "doing": doing,
        "call_id": call_id_of(input.args) if "." not in doing else "",
        "why": f"{why[:LONGEST_WHY]} (worker {worker})".encode("utf-8", "replace").decode(),
    }
    try:
        await own_session.handle().signal(WORKER_LACKS, lacks, rpc_timeout=timedelta(seconds=TELL_SECONDS))
    except (Exception, asyncio.CancelledError) as error:  # noqa: BLE001  nothing may take the place of NotHere
        log.warning("session %s could not be notified of what is missing: %s", own_session.key(), error)
