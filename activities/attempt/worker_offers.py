"""Compares what an agent names with what the operator of this worker offers, before a reply begins.

What every worker has is checked where an agent is made (`agent.values.spec.known_names`); tools, middlewares, skills
and templates are looked for where they are loaded.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from longhaul.activities.attempt.workspaces import not_here
from longhaul.activities.models.profiles import no_profile
from longhaul.agent.permission.decision_table import analyzers_of
from longhaul.agent.plain.text import LONGEST_NAME, did_you_mean
from longhaul.agent.values.spec.agent_spec import AgentSpec
from longhaul.agent.values.spec.known_names import ANALYZERS, CONDENSERS, OFFLOADERS, is_profile_name


@dataclass(frozen=True, slots=True)
class Offered:
    """Names that agents may use on this worker."""

    offloaders: tuple[str, ...] = OFFLOADERS
    condensers: tuple[str, ...] = CONDENSERS
    analyzers: tuple[str, ...] = ANALYZERS
    profiles: tuple[str, ...] = ()
    """Of models; an agent may have others of its own."""
    postprocessors: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()
    images: tuple[str, ...] = ()

    def check(self, spec: AgentSpec) -> None:
        """Raises NotHere for the first name that this worker does not have."""
        _check("postprocessor", spec.postprocess.values(), self.postprocessors, "LONGHAUL_TOOLS")
        _check("agent kind", [spec.kind] if spec.kind else [], self.kinds, "LONGHAUL_TOOLS")
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
