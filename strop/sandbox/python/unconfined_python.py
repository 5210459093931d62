"""Python programs in a process without a sandbox, for machines without one, where the user asks for it.

Time, memory and output are limited. Files, network and other processes are not: a program may do whatever the user may.
"""

from __future__ import annotations

import asyncio
import os
import sys
import time
from asyncio.subprocess import PIPE
from collections.abc import Sequence
from dataclasses import dataclass

from strop.errors import ConfigurationError
from strop.sandbox.execution import USUAL, Allowance, Ending, Ran
from strop.sandbox.kill_tree import ended
from strop.sandbox.python.warm_interpreter import NO_MEMORY
from strop.sandbox.watched_process import limit, watched

# the program comes first on its standard input, so that no argument is too long; what is left is its own
_BEGIN = f"""
import os, random, sys
text = sys.stdin.buffer.read(int(sys.argv[1]))
random.seed(0)
try:
    exec(compile(text, "<program>", "exec"), {{"__name__": "__main__"}})
except MemoryError:
    os._exit({NO_MEMORY})
"""


@dataclass(frozen=True)
class PlainProcess:
    """Python programs with a fresh interpreter each; results are untrusted."""

    async def run(self, program: str, stdin: str = "", allowance: Allowance = USUAL) -> Ran:
        texts = [each.encode("utf-8", errors="surrogatepass") for each in (program, stdin)]
        begun = time.monotonic()
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-s", "-S", "-P", "-B", "-X", "utf8", "-c", _BEGIN, str(len(texts[0]))),
            stdin=PIPE,
            stdout=PIPE,
            stderr=PIPE,
            env={"PYTHONHASHSEED": "0"},
            cwd="/",
            start_new_session=True,
            preexec_fn=lambda: limit(allowance),
        )
        try:
            ran = await watched(process, b"".join(texts), allowance, begun)
        finally:
            await ended(process)
        is_full = ran.ending is Ending.FINISHED and ran.code == NO_MEMORY
        return Ran(Ending.MEMORY if is_full else ran.ending, ran.stdout, ran.stderr, ran.code, ran.seconds)

    async def close(self) -> None:
        """There is nothing to close."""


@dataclass(frozen=True)
class PlainCommand:
    """Commands with a minimal environment."""

    environment: tuple[tuple[str, str], ...] = ()

    async def run(self, command: Sequence[str], stdin: str = "", allowance: Allowance = USUAL) -> Ran:
        begun, known = time.monotonic(), {"PATH": os.environ.get("PATH", os.defpath), "LANG": "C.UTF-8"}
        try:
            process = await asyncio.create_subprocess_exec(
                *command,
                stdin=PIPE,
                stdout=PIPE,
                stderr=PIPE,
                env=known | dict(self.environment),
                start_new_session=True,
                preexec_fn=lambda: limit(allowance),
            )
        except OSError as error:
            raise ConfigurationError(f"{command[0]} cannot be run: {error}") from error
        try:
            return await watched(process, stdin.encode(), allowance, begun)
        finally:
            await ended(process)
