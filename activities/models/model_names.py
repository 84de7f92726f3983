"""Names of models, and the models that they stand for."""

from dataclasses import dataclass

from longhaul.activities.models.failures.errors import SetupError
from longhaul.agent.values.spec.agent_spec import ModelConfig
from longhaul.agent.values.spec.known_names import split_model, unknown_model
from longhaul.agent.values.spec.profiles import ModelProfile


@dataclass(frozen=True, slots=True)
class ModelName:
    provider: str
    name: str
    """The provider's own name of the model; for `scripted` the path of the file."""


@dataclass(frozen=True, slots=True)
class Called:
    """What a name stands for."""

    name: ModelName
    config: ModelConfig
    """As the model is called, with its address and the name of its key."""
    profile: ModelProfile | None = None
    of_operator: bool = False
    """The profile is the operator's own, whose word on keys and addresses counts."""

    @property
    def full_name(self) -> str:
        """With the provider's prefix."""
        return f"{self.name.provider}:{self.name.name}"

    @property
    def told_by(self) -> str:
        """The name by which the model's family is told, with the provider's prefix."""
        return self.full_name if self.profile is None else f"{self.name.provider}:{self.profile.told_by}"


def parse_model_name(full_model_name: str) -> ModelName:
    """Split `anthropic:claude-x`. Raises SetupError for a name without a known prefix or without a rest."""
    if why := unknown_model(full_model_name):
        raise SetupError(f"{why[0].upper()}{why[1:]}.")
    prefix, name = split_model(full_model_name)
    return ModelName(prefix, name.strip())
