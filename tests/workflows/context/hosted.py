"""Models of clouds that are called through pydantic-ai, as sessions name them."""

from typing import Any

from longhaul.agent.values.spec.known_names import split_model
from tests.activities.models.sample_requests import keys_for
from tests.workflows.conftest import Stage

NOVA, OPUS = "ai:bedrock:us.amazon.nova-pro-v1:0", "ai:bedrock:us.anthropic.claude-opus-4-8"
VERTEX = "ai:google-vertex:gemini-3-pro"
HOSTED = {
    NOVA: {"region": "us-east-1"},
    OPUS: {"region": "us-east-1"},
    VERTEX: {"region": "us-east5", "project": "ours"},
}
"""By clouds: an agent has a profile for each."""


def named(stage: Stage, model: str, url: str, **config: Any) -> dict[str, Any]:
    """How an agent names it at that address, with its settings; the operator lists the key for it."""
    if model not in HOSTED:
        return {"model": model, "model_config": {"base_url": url, **config}}
    stage.places += keys_for(url)
    provider, name = split_model(model)
    key = {"base_url": url, "api_key_env": "OPENAI_API_KEY"}
    profile = {"provider": provider, "model": name, **key, **HOSTED[model]}
    return {"model": "hosted", "models": {"hosted": profile}, "model_config": config}
