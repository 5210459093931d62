"""Reward in a monitored process, which records opened files, network access and child processes."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from strop.attack.ask_rewards import InWorker
from strop.capabilities import Opens, outermost

_CODE = (".py", ".pyc", ".so", ".pth", ".egg-info", ".dist-info", ".zip")
_PARTS = ("/site-packages/", "/dist-packages/", "/proc/", "/sys/", "/dev/", "/usr/share/", "/etc/")
_ASKS = ("socket.connect", "socket.getaddrinfo", "subprocess.Popen", "os.system", "os.exec", "os.posix_spawn")


@dataclass(frozen=True)
class WatchedReward(InWorker):
    """Runs in a worker process that stays monitored; access by native code is not recorded."""

    journal: str  # a file that takes a line for each thing seen

    def open_resources(self) -> None:
        """Watch from before anything of the reward is loaded."""
        _watch(self.journal)
        for _, part in outermost(self.inner, Opens):
            part.open_resources()


def _watch(journal: str) -> None:
    told, seen = os.open(journal, os.O_WRONLY | os.O_APPEND | os.O_CREAT), set[str]()

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        line = _line(event, arguments)
        if line and line not in seen:
            seen.add(line)
            os.write(told, f"{line}\n".encode(errors="replace"))  # which raises no event

    sys.addaudithook(hook)


def _line(event: str, arguments: tuple[Any, ...]) -> str:
    if event in _ASKS:
        return f"{event}\t{str(arguments[-1] if event.startswith('socket.connect') else arguments[0])[:200]}"
    if event != "open" or not isinstance(arguments[0], str | bytes):
        return ""
    path = os.fsdecode(arguments[0])
    is_code = path.endswith(_CODE) or any(part in f"{path}/" for part in _PARTS) or path.startswith(_library())
    return "" if is_code or not path else f"open\t{os.path.abspath(path)}"  # noqa: PTH100 (it opens nothing)


def _library() -> tuple[str, ...]:
    return tuple({f"{sys.prefix}/", f"{sys.base_prefix}/lib", str(Path(__file__).parents[1])})
