"""The whole outputs that a state names, which lie among the blobs of the session that has made them: a copy is given
its own, and whoever takes a state in from elsewhere is told of those that stay there."""

from contextlib import AbstractAsyncContextManager
from typing import Protocol

from longhaul.agent.fold.agent_state import AgentState
from longhaul.starter.reach.connection import Unreachable
from longhaul.starter.visible import one_line
from longhaul.stores.blobs.blobs import BlobsUnavailable, NoBlob
from longhaul.stores.offload.session_blobs import POINTER, SessionBlobs, digits_in, named_in


class KeepsOutputs(Protocol):
    """A session, as far as it keeps outputs."""

    def outputs(self) -> AbstractAsyncContextManager[SessionBlobs]:
        """Raises Unreachable."""
        ...


async def with_own_outputs(state: AgentState, first: KeepsOutputs, copy: KeepsOutputs) -> tuple[AgentState, str]:
    """The state, in which outputs of the first session are named as they lie among the copy's blobs; and a sentence for
    a person about those that could not be copied. What only quotes a name, or was lost, stays as it is."""
    text = state.model_dump_json()
    wanted, lost = named_in(text.encode()), dict[str, str]()
    if not wanted:
        return state, ""
    try:
        async with first.outputs() as there, copy.outputs() as here:
            await here.begin()
            for digits in wanted:
                try:
                    text = text.replace(POINTER + digits, await here.take_over(there, digits))
                except NoBlob:
                    continue
                except (BlobsUnavailable, ValueError) as error:
                    lost[digits] = str(error)
    except (Unreachable, BlobsUnavailable) as error:
        lost = dict.fromkeys(wanted, str(error))
    why = f"{_outputs(len(lost))} could not be copied: {one_line(next(iter(lost.values())))}" if lost else ""
    return AgentState.model_validate_json(text), why


async def outputs_elsewhere(state: AgentState, taker: KeepsOutputs) -> str:
    """A sentence for a person about whole outputs that the taker of a state does not have; empty where it has all. They
    are not fetched: a state may name what belongs to others."""
    results = (result for message in state.context for result in message.get_tool_results())
    wanted = {digits for result in results if (digits := digits_in(result.get_text()))}
    if not wanted:
        return ""
    try:
        async with taker.outputs() as own:
            lacks = wanted - await own.known()
    except (Unreachable, BlobsUnavailable) as error:
        return f"whether {_outputs(len(wanted))} can be read here is not known: {one_line(str(error))}"
    if not lacks:
        return ""
    return f"{_outputs(len(lacks))} can't be read here: left among the blobs of the session that made them"


def _outputs(count: int) -> str:
    return f"{count} whole output{'' if count == 1 else 's'}"
