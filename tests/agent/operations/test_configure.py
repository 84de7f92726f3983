"""What `configure` may change, and that what it leaves can be read by every later run."""

import pytest

from longhaul.agent.values.spec.agent_spec import AgentSpec
from tests.agent.play import Play

AT_GATEWAY = {"base_url": "https://gateway.example/v1"}


@pytest.mark.parametrize(
    ("operations", "why"),
    [
        ([{"model_config": AT_GATEWAY}, {"model": "fast"}], "base_url: 'fast' is a profile and has its own"),
        ([{"model": "fast"}, {"model_config": AT_GATEWAY}], "base_url: 'fast' is a profile and has its own"),
        ([{"model": "fast", "model_config": AT_GATEWAY}], "base_url: 'fast' is a profile and has its own"),
        ([{"model_config": {"call_timeout_seconds": 1e15}}], "model_config.call_timeout_seconds"),
        ([{"model_config": {"max_output_tokens": 10**400}}], "model_config.max_output_tokens"),
    ],
)
def test_operations_that_do_not_fit_each_other_are_refused_and_the_agent_stays_readable(
    operations: list[dict[str, object]], why: str
) -> None:
    play = Play([], spec=AgentSpec(name="mason", model="openai-chat:foo"))
    answers = [play.tell("configure", operation) for operation in operations]

    assert answers[:-1] == [{"configured": True}] * (len(operations) - 1)
    assert why in str(answers[-1])
    assert AgentSpec.model_validate_json(play.journal.spec.model_dump_json()) == play.journal.spec
