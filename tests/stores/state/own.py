"""A store of somebody's own, named by a setting."""

from longhaul.stores.state.file_store import MemoryStore


class Shared(MemoryStore):
    single_host = False


class Demanding(MemoryStore):
    def __init__(self, place: str) -> None:
        super().__init__()
        self.place = place


class Unfinished:
    async def get_session(self, user_id: str | None, agent_id: str, session_id: str) -> None:
        """Finds nothing."""
