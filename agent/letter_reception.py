"""Receives what comes in from outside: bodies become entries, or are refused with a sentence that changes nothing.

Rules of this file: it reads the record and never changes it; a refusal is the only exception it raises.
"""

from longhaul.agent.letters import all_letters, signed_approvals
from longhaul.agent.letters.letter import Letter, Received
from longhaul.agent.letters.multiple_approvals import refuse_alone
from longhaul.agent.record import Record


def receive(record: Record, letter: Letter) -> Received:
    """Read one letter; raises Unusable with the reason when it can't be acted on."""
    row, body = all_letters.read(letter.name, letter.arguments)
    signed_approvals.refuse_unsigned(record, body)
    refuse_alone(record, body)
    return row.receive(record, body, letter)
