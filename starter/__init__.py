"""What a program needs to talk with sessions: `from starter import Longhaul`.

Names are imported when they are asked for: the command line must not pay for Temporal's SDK to print its help.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from activities.stores.opening import open_store
    from activities.stores.redis import RedisStorage
    from activities.stores.sql import SqlStore
    from activities.stores.store import SessionRecord, StateStore
    from agent.folding import ReplyFold
    from agent.messages import AssistantMsg, Msg, UserMsg
    from agent.settings import AgentSpec
    from agent.state import AgentState
    from starter.asking import NoSession
    from starter.client import Longhaul
    from starter.connection import Unreachable
    from starter.feed import Feed
    from starter.session import Session
    from starter.user_agent import UserAgent
    from starter.wire import Refused

__all__ = [
    "AgentSpec",
    "AgentState",
    "AssistantMsg",
    "Feed",
    "Longhaul",
    "Msg",
    "NoSession",
    "RedisStorage",
    "Refused",
    "ReplyFold",
    "Session",
    "SessionRecord",
    "SqlStore",
    "StateStore",
    "Unreachable",
    "UserAgent",
    "UserMsg",
    "open_store",
]

_HOMES = {
    "AgentSpec": "agent.settings",
    "AgentState": "agent.state",
    "AssistantMsg": "agent.messages",
    "Feed": "starter.feed",
    "Longhaul": "starter.client",
    "Msg": "agent.messages",
    "NoSession": "starter.asking",
    "RedisStorage": "activities.stores.redis",
    "Refused": "starter.wire",
    "ReplyFold": "agent.folding",
    "Session": "starter.session",
    "SessionRecord": "activities.stores.store",
    "SqlStore": "activities.stores.sql",
    "StateStore": "activities.stores.store",
    "Unreachable": "starter.connection",
    "UserAgent": "starter.user_agent",
    "UserMsg": "agent.messages",
    "open_store": "activities.stores.opening",
}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"starter has no {name!r}; it has: {', '.join(__all__)}")
