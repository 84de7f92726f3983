"""Decides whether a step that waits is begun anew: it was begun with another model than its session has by now."""

from dataclasses import dataclass

from longhaul.agent.entries import all_entries as e
from longhaul.agent.record import Record
from longhaul.agent.values.spec.agent_spec import ModelConfig


@dataclass(frozen=True, slots=True)
class BegunStep:
    """A step of the session's own that is under way, and what it was begun with."""

    activity: str
    model: str | None
    config: ModelConfig


def begun(activity: str, record: Record) -> BegunStep:
    return BegunStep(activity, record.spec.model, record.spec.llm_config)


def begins_anew(step: BegunStep | None, entry: e.AnyEntry, record: Record) -> bool:
    """Whether this entry, which is not in the record yet, shows that the step waits with a model, or a way to call it,
    that is another by now. It may wait for hours: for a provider that is away, or a worker that has what it needs."""
    if step is None:
        return False
    model, config, lacking = record.spec.model, record.spec.llm_config, record.life.lacking
    match entry:
        case e.Configured():
            model, config = entry.model or model, entry.llm_config or config
        case e.WorkerLacks():
            lacking = entry
        case _:
            return False
    waits = lacking is not None and lacking.doing == step.activity and not lacking.host
    return waits and (model, config) != (step.model, step.config)
