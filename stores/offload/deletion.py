"""The end of what a session has offloaded: its files in a data directory, and its keys in Redis.

Attachments stay, for they belong to all sessions of their owner; and what an offloader of the operator's own has kept,
it alone can find.
"""

import asyncio
import shutil
from pathlib import Path

from redis.exceptions import RedisError

from longhaul.stores.names import owner_name, readable_folders, safe_name, workdir_of
from longhaul.stores.state.redis_connection import connect, target_of
from longhaul.stores.state.store import StoreUnavailable

KEYS_AT_ONCE = 500


async def forget_files(data_dir: Path, agent: str, user_id: str | None, session_id: str) -> int:
    """Delete the session's folder, and return how many files that were. Raises OSError."""
    return await asyncio.to_thread(_removed, data_dir, owner_name(agent, user_id), session_id)


def _removed(data_dir: Path, owner: str, session_id: str) -> int:
    folder = readable_folders(workdir_of(data_dir.resolve(), owner), session_id)[0]
    # A link on the way leads to files of somebody else.
    if not folder.is_dir() or folder.resolve() != folder:
        return 0
    count = sum(1 for path in folder.iterdir() if not path.name.startswith("."))
    shutil.rmtree(folder)
    return count


async def forget_keys(redis_url: str, agent: str, user_id: str | None, session_id: str) -> int:
    """Delete what `RedisOffloader` wrote for the session, and return how many keys that were; looks at all keys of the
    database. Raises BadStoreSetting, StoreUnavailable."""
    client, sentinels = connect(target_of(redis_url)[0])
    # Safe names have none of the characters that stand for others in a pattern.
    pattern = f"longhaul:offload:{owner_name(agent, user_id)}:{{{safe_name(session_id)}}}:*"
    try:
        keys = [key async for key in client.scan_iter(match=pattern, count=KEYS_AT_ONCE)]
        for key in keys:
            await client.delete(key)
        return len(keys)
    except (RedisError, OSError) as error:
        raise StoreUnavailable(f"LONGHAUL_REDIS_URL: Redis does not answer ({type(error).__name__})") from error
    finally:
        for opened in (client, *sentinels):
            await opened.aclose()
