"""Tells whether a Redis throws away what it was given when memory is short: nothing may be kept in one that does."""

from typing import Any, cast

from redis.exceptions import RedisClusterException, RedisError

from longhaul.stores.state.redis_connection import connect, target_of


async def why_forgetful(url: str) -> str:
    """Empty for one that keeps all, and for one that does not answer or does not tell. Raises BadStoreSetting."""
    client, beside = connect(target_of(url)[0])
    try:
        told: dict[str, Any] = await client.info("memory")
    except (RedisError, RedisClusterException, OSError):
        return ""
    finally:
        for opened in (client, *beside):
            await opened.aclose()
    # A cluster answers node by node.
    nodes = [told] if "maxmemory_policy" in told else [node for node in told.values() if isinstance(node, dict)]
    return next((why for node in nodes if (why := _why(cast(dict[str, Any], node)))), "")


def _why(node: dict[str, Any]) -> str:
    policy, limit = str(node.get("maxmemory_policy", "noeviction")), int(node.get("maxmemory", 0))
    if policy == "noeviction" or (limit == 0 and not policy.startswith("allkeys-")):
        return ""
    return f"its maxmemory-policy is {policy}" + (f" with a maxmemory of {limit:,} bytes" if limit else "")
