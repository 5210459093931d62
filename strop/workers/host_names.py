"""Host names by which a server of this machine is asked: a web page of another name that leads here is refused."""

from __future__ import annotations

import ipaddress
import re
import socket
from dataclasses import dataclass

_LOOPBACK = frozenset({"127.0.0.1", "localhost", "[::1]"})


@dataclass(frozen=True)
class HostNames:
    """Names that may stand in a request's Host header (DNS rebinding brings another one), and whether addresses may."""

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
