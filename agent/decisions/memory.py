"""Says when a reply is to be written down in the long-term memory: once, before it ends, where its agent wants that."""

from longhaul.agent.record import Record
from longhaul.agent.steps import Finish, Memorise, Step
from longhaul.agent.values.conversation.messages import FinishedReason
from longhaul.agent.values.spec.memory import is_static

_CAME_TO_SOMETHING = (FinishedReason.COMPLETED, FinishedReason.EXCEED_MAX_ITERS)


def memorised(step: Step, record: Record) -> Step:
    """The step, or what comes before it."""
    reply = record.reply
    if reply is None or reply.memorised or not isinstance(step, Finish) or step.reason not in _CAME_TO_SOMETHING:
        return step
    return Memorise() if is_static(record.spec.long_term_memory_mode) else step
