"""Reads which Redis a URL means, makes a client for it, and tells whether it throws away what it was given when memory
is short: nothing may be kept in one that does."""

import ssl
from dataclasses import dataclass, field
from typing import Any, Literal, cast
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

from redis.asyncio import Redis
from redis.asyncio.cluster import ClusterNode, RedisCluster
from redis.asyncio.retry import Retry
from redis.asyncio.sentinel import Sentinel
from redis.backoff import ConstantBackoff
from redis.exceptions import RedisClusterException, RedisError

from longhaul.stores.state.store import BadStoreSetting

Client = Redis | RedisCluster

KINDS: dict[str, tuple[Literal["server", "cluster", "sentinel"], bool]] = {
    "redis": ("server", False),
    "rediss": ("server", True),
    "redis+cluster": ("cluster", False),
    "rediss+cluster": ("cluster", True),
    "redis+sentinel": ("sentinel", False),
    "rediss+sentinel": ("sentinel", True),
}
"""Scheme to the shape of Redis and whether it speaks TLS."""

PORTS = {"server": 6379, "cluster": 6379, "sentinel": 26379}
PARAMETERS = {"prefix", "ca"}
SOCKET_SECONDS = 5.0


@dataclass(frozen=True)
class Target:
    kind: Literal["server", "cluster", "sentinel"]
    nodes: tuple[tuple[str, int], ...]
    """Hosts and ports: the server, some nodes of the cluster, or the sentinels."""
    login: dict[str, Any] = field(default_factory=dict[str, Any], repr=False)
    """`db`, `username`, `password`, and what TLS needs."""
    master: str = ""

    @property
    def hosts(self) -> str:
        """As errors and addresses name them, without the login."""
        return ",".join(f"{host}:{port}" for host, port in self.nodes)


def target_of(url: str) -> tuple[Target, str]:
    """What a URL names, and the key prefix in its query, if any. Raises BadStoreSetting, never with a password."""
    parts = urlsplit(url)
    if parts.scheme not in KINDS:
        raise BadStoreSetting(f"store: {parts.scheme!r} is no kind of Redis; known are {', '.join(KINDS)}")
    kind, tls = KINDS[parts.scheme]
    query = dict(parse_qsl(parts.query))
    if unknown := set(query) - PARAMETERS:
        raise BadStoreSetting(f"store: {parts.scheme}://… has no parameter {min(unknown)!r}; take ?prefix= or ?ca=")
    master, db = _path(parts, kind)
    login: dict[str, Any] = {"username": _plain(parts.username), "password": _plain(parts.password)}
    if kind != "cluster":
        login["db"] = db
    if tls:
        # A server that shows no certificate of a known authority is not ours.
        login |= {"ssl": True, "ssl_ca_certs": query.get("ca"), "ssl_cert_reqs": "required"}
        login["ssl_min_version"] = ssl.TLSVersion.TLSv1_2
    port = PORTS[kind]
    nodes = []
    for place in parts.netloc.rpartition("@")[2].split(","):
        try:
            node = urlsplit(f"//{place}")
            nodes.append((node.hostname or "localhost", node.port or port))
        except ValueError as error:
            raise BadStoreSetting(f"store: {place!r} is no host:port") from error
    return Target(kind, tuple(nodes), login, master), query.get("prefix", "")


def _plain(part: str | None) -> str | None:
    return unquote(part) if part else None


def _path(parts: SplitResult, kind: str) -> tuple[str, int]:
    """The master's name, for sentinels, and the number of the database."""
    steps = [step for step in parts.path.split("/") if step]
    master = ""
    if kind == "sentinel":
        if not steps:
            raise BadStoreSetting("store: redis+sentinel://host:port,host:port/MASTER needs the master's name")
        master = steps.pop(0)
    if len(steps) > 1 or any(not step.isdecimal() for step in steps) or (steps and kind == "cluster"):
        raise BadStoreSetting(f"store: {parts.path!r} is no number of a Redis database")
    return master, int(steps[0]) if steps else 0


def connect(target: Target) -> tuple[Client, tuple[Redis, ...]]:
    """A client that gives up in seconds and connects with the first command, and what else is closed with it."""
    limits: dict[str, Any] = {
        "socket_timeout": SOCKET_SECONDS,
        "socket_connect_timeout": SOCKET_SECONDS,
        "health_check_interval": 30,
    }
    # Once more and at once: a pooled connection that the server has closed is found out by using it.
    once_more = Retry(ConstantBackoff(0.1), 1)
    match target.kind:
        case "server":
            host, port = target.nodes[0]
            return Redis(host=host, port=port, retry=once_more, **limits, **target.login), ()
        case "cluster":
            nodes = [ClusterNode(host, port) for host, port in target.nodes]
            return RedisCluster(startup_nodes=nodes, retry=once_more, **limits, **target.login), ()
        case "sentinel":
            # Sentinels have a login of their own, or none; the URL's is the master's.
            limits["retry"] = once_more
            asked = Sentinel(  # type: ignore[no-untyped-call]
                list(target.nodes), sentinel_kwargs=limits, **limits, **target.login
            )
            master: Redis = asked.master_for(target.master)
            return master, tuple(asked.sentinels)


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
