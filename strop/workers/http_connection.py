"""HTTP connections of strop's servers: a client authenticates in time or is dropped; few may wait unauthenticated."""

from __future__ import annotations

import asyncio
import resource
from collections.abc import Callable, MutableMapping
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, cast

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

if TYPE_CHECKING:
    from uvicorn.server import ServerState

_LET_IN = "let_in"


def _half_of_the_files() -> int:
    """How many connections may wait: the run beside the server opens files, too."""
    return min(resource.getrlimit(resource.RLIMIT_NOFILE)[0] // 2, 4096)


@dataclass
class UnknownClients:
    """Unauthenticated connections, limited in time and number; the oldest is dropped first."""

    seconds: float = 5.0
    most: int = field(default_factory=_half_of_the_files)
    _timers: dict[asyncio.Transport, asyncio.TimerHandle] = field(default_factory=dict, init=False, repr=False)

    def add(self, connection: asyncio.Transport, since: float) -> None:
        while len(self._timers) >= self.most:
            self._drop(next(iter(self._timers)))
        loop = asyncio.get_running_loop()
        self._timers[connection] = loop.call_at(since + self.seconds, self._drop, connection)

    def remove(self, connection: asyncio.Transport) -> None:
        if (timer := self._timers.pop(connection, None)) is not None:
            timer.cancel()

    def _drop(self, connection: asyncio.Transport) -> None:
        self.remove(connection)
        connection.abort()


class Connection(H11Protocol):
    """One client, unauthenticated until the application calls `let_in` for one of its requests."""

    def __init__(
        self,
        unknown_clients: UnknownClients,
        config: uvicorn.Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        self._unknown_clients, self._is_known = unknown_clients, False
        super().__init__(config, server_state, {_LET_IN: self._let_in}, _loop)

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._since = self.loop.time()
        self._unknown_clients.add(transport, self._since)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self.cycle is not None and not self.cycle.response_complete:
            # it has asked, and waits for us: a loop that was busy for long is not its fault
            self._unknown_clients.remove(self.transport)

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if not self._is_known and not self.transport.is_closing():
            self._unknown_clients.add(self.transport, self._since)

    def connection_lost(self, exc: Exception | None) -> None:
        self._unknown_clients.remove(self.transport)
        super().connection_lost(exc)

    def _let_in(self) -> None:
        self._is_known = True
        self._unknown_clients.remove(self.transport)


def let_in(scope: MutableMapping[str, Any]) -> None:
    """The client of this request has shown a key: its connection stays."""
    known: Callable[[], None] | None = scope.get("state", {}).get(_LET_IN)
    if known is not None:  # None: another server asks the application
        known()


def config_of(app: Any, unknown_clients: UnknownClients) -> uvicorn.Config:
    """Settings of a server that gives unknown_clients little time and says nothing of what they send."""
    made = cast("type[Connection]", partial(Connection, unknown_clients))
    return uvicorn.Config(app, log_level="error", lifespan="off", access_log=False, http=made)
