"""The key of one session, as its client has it: reads what was stored with it, deletes it, and looks whether
another process has."""

from temporalio.client import Client

from longhaul.starter.reach.connection import Unreachable, keyring_in
from longhaul.stores.keys.encrypted_store import decrypted_record
from longhaul.stores.keys.keyring import KeysUnavailable
from longhaul.stores.state.store import SessionRecord
from longhaul.workflows.contract import owner_of


async def readable(client: Client, workflow_id: str, record: SessionRecord | None) -> SessionRecord | None:
    """What was stored of the session. Raises UnreadableRecord, StoreUnavailable."""
    if record is None:
        return None
    return await decrypted_record(keyring_in(client), lambda: owner_of(client.namespace, workflow_id), record)


async def delete_key(client: Client, workflow_id: str) -> bool:
    """Whether there was one of its own; a sub-agent shares that of the session which started it. Raises Unreachable."""
    keys = keyring_in(client)
    try:
        return keys is not None and await keys.delete(owner_of(client.namespace, workflow_id))
    except KeysUnavailable as error:
        raise Unreachable(f"{error}; nothing is deleted yet") from error


def look_again(client: Client, workflow_id: str) -> None:
    """Before something is sent that may begin the session: another process may just have deleted its key."""
    if (keys := keyring_in(client)) is not None:
        keys.look_again(owner_of(client.namespace, workflow_id))
