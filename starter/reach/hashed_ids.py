"""By which names the server knows sessions and users: their own, or hashes that only a key's owner can make."""

from longhaul.agent.plain.errors import BadSetup
from longhaul.agent.plain.ids import hub_workflow_id, opaque, opaque_workflow_id, workflow_id
from longhaul.starter.settings import Settings

SHORTEST_KEY = 16


class BadIdKey(BadSetup, ValueError):
    """LONGHAUL_OPAQUE_IDS is on, and there is no key that would keep anything to itself."""


class Naming:
    """Raises BadIdKey where hashes are wanted and the key is missing or short."""

    def __init__(self, settings: Settings) -> None:
        self._key = settings.id_key.get_secret_value() if settings.opaque_ids else ""
        if settings.opaque_ids and len(self._key) < SHORTEST_KEY:
            raise BadIdKey(
                f"LONGHAUL_ID_KEY: with LONGHAUL_OPAQUE_IDS a key of at least {SHORTEST_KEY} characters is needed, the "
                "same for all clients"
            )

    @property
    def is_opaque(self) -> bool:
        return bool(self._key)

    def workflow_id(self, agent: str, user: str | None, session: str) -> str:
        if self._key:
            return opaque_workflow_id(self._key, agent, user, session)
        return workflow_id(agent, user, session)

    def hub_id(self, user: str | None, hub: str) -> str:
        """The workflow id of a hub."""
        return f"longhaul-hub/##{opaque(self._key, user, hub)}" if self._key else hub_workflow_id(user, hub)

    def indexed(self, name: str) -> str:
        """A user or a session, as a search attribute has it."""
        return opaque(self._key, name) if self._key else name
