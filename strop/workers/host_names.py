"""Allowed host names of a local server: a request through another name is refused (DNS rebinding)."""

from __future__ import annotations

import ipaddress
import re
import socket
from dataclasses import dataclass

_LOOPBACK = frozenset({"127.0.0.1", "localhost", "[::1]"})


@dataclass(frozen=True)
class HostNames:
    """Names allowed in a request's Host header, and whether IP addresses are allowed."""

    names: frozenset[str] = _LOOPBACK
    takes_addresses: bool = False  # any address: it is no name that somebody else could make lead here

    @classmethod
    def of(cls, host: str, more: tuple[str, ...] = ()) -> HostNames:
        """Those of a server that is bound to this host, and what its owner calls it beside."""
        told = frozenset(each.lower() for each in more)
        if host in ("127.0.0.1", "localhost", "::1"):
            return cls(_LOOPBACK | told)
        return cls(_LOOPBACK | told | {host.lower(), socket.gethostname().lower()}, takes_addresses=True)

    def know(self, asked: str) -> bool:
        """Whether a Host header, which may end in a port, names this server."""
        name = re.sub(r":\d+$", "", asked).lower()
        return name in self.names or (self.takes_addresses and _is_address(name))


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name.removeprefix("[").removesuffix("]"))
    except ValueError:
        return False
    return True
