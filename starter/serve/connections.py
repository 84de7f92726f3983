"""Connections on which nothing is asked: for how long, and how many of one address."""

from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

HEADER_SECONDS = 10.0
"""From a connection's beginning, or the end of its last answer, until the next request's headers are all there."""
MOST_WAITING = 200
"""Of one address. One more, and the one that has waited longest is closed: whoever comes now is served."""
MOST_WAITING_IN_ALL = 500
"""Of all addresses. Where they filled the server, it would answer nobody."""


class Connection(H11Protocol):
    """uvicorn's, which would hold one that asks nothing, or half of something, for as long as the other side likes."""

    waits_since: float | None = None
    """By the loop's clock; None while a request is answered."""
    _deadline: Any = None

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._wait()
        waiting = [one for one in self.connections if isinstance(one, Connection) and one.waits_since is not None]
        here = [one for one in waiting if one.client and self.client and one.client[0] == self.client[0]]
        crowd = here if len(here) > MOST_WAITING else waiting if len(waiting) > MOST_WAITING_IN_ALL else []
        if crowd:
            min(crowd, key=lambda one: one.waits_since or 0.0).give_up()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self._is_asked():
            self._stop_waiting()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if not self._is_asked():  # the next request may have been there already
            self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_waiting()
        super().connection_lost(exc)

    def _is_asked(self) -> bool:
        cycle: Any = self.cycle  # None before the first request
        return cycle is not None and not cycle.response_complete

    def _wait(self) -> None:
        self._stop_waiting()
        self.waits_since = self.loop.time()
        self._deadline = self.loop.call_later(HEADER_SECONDS, self.give_up)

    def _stop_waiting(self) -> None:
        self.waits_since = None
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def give_up(self) -> None:
        self._stop_waiting()
        self.connections.discard(self)  # or it would count until the loop has closed it
        self.transport.abort()
