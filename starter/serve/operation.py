"""One row of the table of routes: from it the server answers, and the OpenAPI document is made."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from pydantic import BaseModel
from starlette.types import ASGIApp

from longhaul.starter.serve.request_bodies import Nothing
from longhaul.starter.serve.requests import Call
from longhaul.starter.serve.tokens import Scope

REQUEST_SECONDS = 30.0
"""A session without a worker would let its caller wait for ever."""

Answer = BaseModel | tuple[int, BaseModel] | ASGIApp | None
Handler = Callable[[Call], Awaitable[Any]]
"""Gives a model (200), a status with a model, nothing (204), or an answer of its own kind."""


@dataclass(frozen=True, slots=True)
class Operation:
    """What one method of one path does."""

    method: Literal["GET", "POST"]
    path: str
    name: str
    summary: str
    handler: Handler
    scope: Scope | None
    """None: for anybody."""
    answers: Mapping[int, type[BaseModel] | str | None] = field(default_factory=dict)
    """Model by status; a media type for what is no JSON; None for no content."""
    query: type[BaseModel] = Nothing
    body: type[BaseModel] | None = None
    headers: tuple[tuple[str, str], ...] = ()
    """Request headers that it reads, and what for."""
    seconds: float = REQUEST_SECONDS
    also: Scope | None = None
    """A second scope that it wants."""
    fields: Mapping[str, Scope] = field(default_factory=dict[str, Scope])
    """Fields of the body that want a further scope, where something stands in them."""
