"""File tool: a few small files in a folder per rollout, deleted at its end."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from strop.environments.tools.tool import WrongCall
from strop.roles import Instrument
from strop.workers.passing_folder import PassingFolder

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}")  # no folders: nothing else on the machine has such a name
_MOST, _LONGEST = 32, 65_536  # files, bytes of each


@dataclass(frozen=True)
class Files(Instrument):
    """File tool with `list`, `read NAME` and `write NAME TEXT`."""

    _folders: list[PassingFolder] = field(
        default_factory=list, init=False, repr=False, compare=False
    )  # one, when needed

    name: ClassVar[str] = "file"
    description: ClassVar[str] = "List, read or write files: do is list, read or write; text is what is written."
    parameters: ClassVar[str] = json.dumps(
        {
            "type": "object",
            "properties": {
                "do": {"type": "string", "enum": ["list", "read", "write"]},
                "name": {"type": "string"},
                "text": {"type": "string"},
            },
            "required": ["do"],
        }
    )

    async def call(self, arguments: dict[str, Any]) -> str:
        if arguments["do"] == "list":
            return "\n".join(self._names()) or "no files"
        path = self._path(arguments.get("name", ""))
        return self._read(path) if arguments["do"] == "read" else self._write(path, arguments.get("text", ""))

    def own(self) -> Files:
        return Files()

    async def release(self) -> None:
        while self._folders:
            self._folders.pop().close()

    def _names(self) -> list[str]:
        return sorted(path.name for folder in self._folders for path in folder.path.iterdir())

    def _path(self, name: str) -> Path:
        if not _NAME.fullmatch(name):
            raise WrongCall("a name has 1 to 64 letters, digits, _ . - and begins with none of the last two")
        if not self._folders:
            self._folders.append(PassingFolder())
        return self._folders[0].path / name

    def _read(self, path: Path) -> str:
        if not path.exists():
            raise WrongCall(f"no file {path.name}; there are: {', '.join(self._names()) or 'none'}")
        return path.read_text()

    def _write(self, path: Path, text: str) -> str:
        size = len(text.encode("utf-8", errors="replace"))
        if size > _LONGEST:
            raise WrongCall(f"a file has at most {_LONGEST} bytes, this text has {size}")
        if not path.exists() and len(self._names()) >= _MOST:
            raise WrongCall(f"there are {_MOST} files already")
        path.write_text(text, errors="replace")
        return "ok"
