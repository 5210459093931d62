"""Sockets and a terminal outside that hear whoever speaks to them, and visits to sockets that attacks open."""

from __future__ import annotations

import asyncio
import os
import socket
import time
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

_TCP, _UDP = socket.SOCK_STREAM, socket.SOCK_DGRAM


class Doors:
    """Listeners on loopback, on paths and on abstract names."""

    def __init__(self, folder: Path, token: str) -> None:
        self._stack, self._token, self._folder = ExitStack(), token, folder
        self._name = "strop-" + os.urandom(6).hex()
        four, six = self._listener(socket.AF_INET, "127.0.0.1"), self._listener(socket.AF_INET6, "::1")
        self._streams = [
            *four[:1],
            *six[:1],
            self._named(_TCP, str(folder / "door")),
            self._named(_TCP, "\0" + self._name),
        ]
        self._datagrams = [*four[1:2], *six[1:2], self._named(_UDP, str(folder / "slot"))]
        self._datagrams.append(self._named(_UDP, "\0" + self._name + "d"))
        self._terminal, self._slave = os.openpty()
        os.set_blocking(self._terminal, False)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self._free = free.getsockname()[1]
        ports = {"port": _port(four), "port6": _port(six), "free": self._free}
        self.known: dict[str, Any] = {**ports, "door": self._name, "tty": os.ttyname(self._slave)}

    def heard(self, nonce: str) -> list[str]:
        """Who connected, and who said the word."""
        found = []
        for stream in self._streams:
            with suppress(BlockingIOError):
                while True:
                    stream.accept()[0].close()
                    found.append(f"connected to {stream.getsockname()}")
        for datagram in self._datagrams:
            with suppress(BlockingIOError):
                while datagram.recv(9999):
                    found.append(f"a datagram to {datagram.getsockname()}")
        with suppress(BlockingIOError, OSError):
            if nonce.encode() in os.read(self._terminal, 1 << 16):
                found.append("typed into a terminal")
        return found

    async def visits(self) -> None:
        """Say the secret to whoever listens where attacks do; until cancelled."""
        targets: list[tuple[int, int, Any]] = [
            (socket.AF_INET, _TCP, ("127.0.0.1", self._free)),
            (socket.AF_INET6, _TCP, ("::1", self._free)),
            (socket.AF_INET, _UDP, ("127.0.0.1", self._free)),
            (socket.AF_UNIX, _TCP, "\0" + self._name + "x"),
            (socket.AF_UNIX, _TCP, str(self._folder / "x")),
        ]
        while True:
            for family, kind, address in targets:
                with suppress(OSError), socket.socket(family, kind) as visitor:
                    visitor.settimeout(0.05)
                    visitor.connect(address)
                    visitor.send(self._token.encode())
            await asyncio.sleep(0.03)

    def close(self) -> None:
        self._stack.close()
        os.close(self._terminal)
        os.close(self._slave)

    def _listener(self, family: socket.AddressFamily, host: str) -> list[socket.socket]:
        """For streams and datagrams at one port; none, where this machine has no such family."""
        try:
            stream = self._stack.enter_context(socket.socket(family, _TCP))
            stream.bind((host, 0))
            datagram = self._stack.enter_context(socket.socket(family, _UDP))
            datagram.bind(stream.getsockname())
        except OSError:
            return []
        stream.listen()
        stream.setblocking(False)
        datagram.setblocking(False)
        return [stream, datagram]

    def _named(self, kind: socket.SocketKind, name: str) -> socket.socket:
        found = self._stack.enter_context(socket.socket(socket.AF_UNIX, kind))
        found.bind(name)
        if not name.startswith("\0"):
            Path(name).chmod(0o777)
        if kind is _TCP:
            found.listen()
        found.setblocking(False)
        return found


def _port(sockets: list[socket.socket]) -> int:
    return int(sockets[0].getsockname()[1]) if sockets else 1


def processes_of(word: str, with_environment: bool) -> list[int]:
    """Processes that carry a word in their command line or name, or in their environment."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        names = ("cmdline", "comm", "environ") if with_environment else ("cmdline", "comm")
        with suppress(OSError):
            if any(word.encode() in (entry / name).read_bytes() for name in names) and int(entry.name) != os.getpid():
                found.append(int(entry.name))
    return found


def left_alive(word: str, with_environment: bool, patience: float = 1.0) -> list[int]:
    """Those that are there when all that was killed has had time to go; they are killed then."""
    until = time.monotonic() + patience
    while (found := processes_of(word, with_environment)) and time.monotonic() < until:
        time.sleep(0.02)
    for pid in found:
        with suppress(ProcessLookupError):
            os.kill(pid, 9)
    return found
