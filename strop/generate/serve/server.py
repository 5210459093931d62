"""HTTP server of the policy endpoint, in the event loop of the sampling process."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from strop.errors import ConfigurationError
from strop.generate.serve.app import App, Guests
from strop.workers.host_names import HostNames
from strop.workers.http_connection import UnknownClients, config_of


@dataclass
class Door:
    """Listening server; port 0 takes a free one, and `path` is a Unix socket for sandboxes without network."""

    guests: Guests
    host: str = "127.0.0.1"
    port: int = 0
    path: str = ""
    names: tuple[str, ...] = ()  # by which it is asked beside its host
    seconds: float = 30.0  # within which the body of a request comes
    unknown_clients: UnknownClients = field(default_factory=UnknownClients, repr=False)
    _serving: asyncio.Task[None] | None = field(default=None, init=False, repr=False)
    _sockets: list[socket.socket] = field(default_factory=list, init=False, repr=False)

    async def open(self) -> str:
        """The address."""
        import uvicorn

        class Server(uvicorn.Server):
            @contextmanager
            def capture_signals(self) -> Iterator[None]:  # those are the run's
                yield

        app = App(self.guests, HostNames.of(self.host, self.names), self.seconds)
        self._sockets = self._bound()
        self._server = Server(config_of(app.starlette(), self.unknown_clients))
        self._serving = asyncio.create_task(self._server.serve(self._sockets))
        while not self._server.started and not self._serving.done():
            await asyncio.sleep(0.005)
        return f"http://{self.host}:{self._sockets[0].getsockname()[1]}"

    async def wait(self) -> None:
        """Until somebody closes it."""
        if self._serving is not None:
            await self._serving

    async def close(self) -> None:
        if self._serving is None:
            return
        self._server.should_exit = self._server.force_exit = True
        await self._serving
        for each in self._sockets:
            each.close()
        self._serving = None

    def _bound(self) -> list[socket.socket]:
        try:
            bound = [socket.create_server((self.host, self.port), backlog=1024)]
            if self.path:
                bound.append(socket.socket(socket.AF_UNIX))
                bound[-1].bind(self.path)
                Path(self.path).chmod(0o666)  # who may pass its folder may knock: a sandbox of root's is not root
                bound[-1].listen(1024)
            return bound
        except OSError as error:
            raise ConfigurationError(
                f"{self.host}:{self.port} cannot be served: {error.strerror}; take another port, or 0 for a free one"
            ) from error
