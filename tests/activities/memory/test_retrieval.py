"""What is found for a request before its reply begins."""

from pathlib import Path

from longhaul.activities.contract import PrepareReply
from longhaul.activities.memory import Retrieval
from longhaul.agent.values.spec.agent_spec import AgentSpec
from longhaul.stores.memories.memories import MemoryOwner, NewMemory
from longhaul.stores.memories.open_memories import LongTerm
from longhaul.stores.memories.sqlite_memories import SqliteKnowledge, SqliteMemories


async def test_five_memories_that_fit_are_told(tmp_path: Path) -> None:
    lasting = LongTerm(SqliteMemories(tmp_path / "memory.db"), SqliteKnowledge(tmp_path / "knowledge.db"))
    boats = [NewMemory(f"k{number}", f"boat-{number} lies in the harbour", f"s{number}") for number in range(9)]
    await lasting.memories.record(MemoryOwner("ana", "lamp"), boats)
    spec = AgentSpec.model_validate({"name": "lamp", "long_term_memory_mode": "static_control"})

    (hint,) = await Retrieval(lasting).hints(
        PrepareReply(spec=spec, session_key="s", request="Which boat lies in the harbour?", user_id="ana")
    )
    await lasting.close()

    assert str(hint.content).count(" lies in the harbour") == 5
