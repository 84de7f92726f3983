"""What a program needs to talk with sessions: `from starter import Longhaul`.

Names are imported when they are asked for: the command line must not pay for Temporal's SDK to print its help.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from agent.messages import AssistantMsg, Msg, UserMsg
    from agent.settings import AgentSpec
    from starter.client import Longhaul
    from starter.connection import Unreachable
    from starter.session import NoSession, Session
    from starter.wire import Refused

__all__ = ["AgentSpec", "AssistantMsg", "Longhaul", "Msg", "NoSession", "Refused", "Session", "Unreachable", "UserMsg"]

_HOMES = {
    "AgentSpec": "agent.settings",
    "AssistantMsg": "agent.messages",
    "Longhaul": "starter.client",
    "Msg": "agent.messages",
    "NoSession": "starter.session",
    "Refused": "starter.wire",
    "Session": "starter.session",
    "Unreachable": "starter.connection",
    "UserMsg": "agent.messages",
}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"starter has no {name!r}; it has: {', '.join(__all__)}")
