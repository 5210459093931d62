"""Attacks without isolation, which is their control: nothing holds them but an end."""

from __future__ import annotations

import asyncio
import json
import os
import re
import struct
import sys
import time
from asyncio.subprocess import PIPE, Process
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

from strop.sandbox.execution import Ending, Ran
from tests.sandbox import witness
from tests.sandbox.attacks import Attack, Control

_MOST, _PATIENCE = 1 << 26, 20.0  # bytes that are kept of a flood; seconds for whoever has no deadline
_HEAD = struct.Struct(">I")
# one interpreter for all programs: they share its state, its descriptors and the pipe on which it answers
_NAIVE = """
import io, json, random, struct, sys, os
own_out, reading = os.fdopen(os.dup(1), "wb", 0), os.fdopen(os.dup(0), "rb")
while head := reading.read(4):
    asked = json.loads(reading.read(struct.unpack(">I", head)[0]))
    sys.stdin, sys.stdout, code = io.StringIO(asked["stdin"]), io.StringIO(), 0
    heard = sys.stdout
    random.seed(0)
    try:
        exec(compile(asked["program"], "<program>", "exec"), globals())
    except Exception as error:
        code = 1
    said = heard.getvalue().encode()
    answer = json.dumps({"ending": "finished", "code": code, "stdout": len(said)}).encode()
    own_out.write(struct.pack(">I", len(answer)) + answer + said)
"""
# a parent that reports how its child ended, and is a process like any other
_WRAPPED = """
import subprocess, sys
done = subprocess.run(sys.argv[1:])
print("exit-code", done.returncode, file=sys.stderr)
"""


@dataclass
class NoSandbox:
    """The control: the same program, and nothing that holds it but an end."""

    _naive: Process | None = None

    async def run(self, attack: Attack, text: str, stdin: str, folder: str) -> Ran:
        if attack.control is Control.NAIVE:
            return await self._asked(text, stdin, attack.seconds + 1.0)
        full = command(attack, text, sys.executable)
        wrapped = [sys.executable, "-I", "-S", "-c", _WRAPPED, *full]
        is_wrapped = attack.control is Control.WRAPPED
        seconds = attack.seconds + 1.0 if attack.family == "time and output" else _PATIENCE
        ran = await _bare(wrapped if is_wrapped else full, stdin, seconds, folder)
        return Ran(Ending.SETUP) if is_wrapped and "exit-code" not in ran.stderr else ran

    async def witness(self, attack: Attack) -> str:
        if attack.control is not Control.NAIVE:
            return ""
        ran = await self._asked(witness.IN_PYTHON, "", 5.0)
        return f"{ran.ending.value} {ran.stdout}"

    async def close(self) -> None:
        """The next program finds a new interpreter."""
        if self._naive is not None:
            _kill_group(self._naive)
            await self._naive.wait()
        self._naive = None

    async def _asked(self, text: str, stdin: str, seconds: float) -> Ran:
        try:
            if self._naive is None:
                self._naive = await asyncio.create_subprocess_exec(
                    *(sys.executable, "-I", "-S", "-c", _NAIVE),
                    stdin=PIPE,
                    stdout=PIPE,
                    stderr=asyncio.subprocess.DEVNULL,
                    start_new_session=True,
                )
            return await asyncio.wait_for(_answered(self._naive, text, stdin), seconds)
        except (OSError, EOFError, TimeoutError, ValueError, KeyError):
            return Ran(Ending.LOST)


async def _answered(naive: Process, text: str, stdin: str) -> Ran:
    assert naive.stdin is not None and naive.stdout is not None
    asked = json.dumps({"program": text, "stdin": stdin}).encode()
    naive.stdin.write(_HEAD.pack(len(asked)) + asked)
    await naive.stdin.drain()
    (size,) = _HEAD.unpack(await naive.stdout.readexactly(4))
    head = json.loads(await naive.stdout.readexactly(min(size, 1 << 20)))
    said = await naive.stdout.readexactly(head["stdout"])
    return Ran(Ending(head["ending"]), said.decode(errors="replace"), code=head["code"])


async def _bare(full: Sequence[str], stdin: str, seconds: float, folder: str) -> Ran:
    begun = time.monotonic()
    nonce = text_nonce(full[-1])
    process = await asyncio.create_subprocess_exec(
        *full,
        stdin=PIPE,
        stdout=PIPE,
        stderr=PIPE,
        env={**os.environ, "STROP_NONCE": nonce},
        cwd=folder or "/",
        start_new_session=True,
        close_fds=False,
    )
    said: list[bytearray] = [bytearray(), bytearray()]
    ending = Ending.FINISHED
    try:
        async with asyncio.timeout(seconds):
            streams = [
                asyncio.create_task(_kept(*pair)) for pair in zip((process.stdout, process.stderr), said, strict=True)
            ]
            await asyncio.gather(_given(process, stdin), _exited(process.pid))
            await asyncio.wait(streams, timeout=0.3)  # a child may hold them
    except TimeoutError:
        ending = Ending.TIMEOUT
        os.kill(process.pid, 9)  # and nobody else: what it started is looked for
    for stream in streams:
        stream.cancel()
    out, err = (bytes(each).decode("utf-8", errors="replace") for each in said)
    return Ran(ending, out, err, seconds=time.monotonic() - begun)


def text_nonce(text: str) -> str:
    """The word of a run, by which all that it started is found again."""
    found = re.search(r"^# ([0-9a-f]{12})$|nonce='?([0-9a-f]{12})", text, re.MULTILINE)
    assert found is not None
    return found[1] or found[2]


async def _kept(stream: asyncio.StreamReader | None, into: bytearray) -> None:
    assert stream is not None
    while heard := await stream.read(1 << 16):
        if len(into) < _MOST:
            into += heard


async def _given(process: Process, stdin: str) -> None:
    assert process.stdin is not None
    with suppress(BrokenPipeError, ConnectionResetError):
        process.stdin.write(stdin.encode())
        await process.stdin.drain()
    process.stdin.close()


async def _exited(pid: int) -> None:
    """Its own end: asyncio waits until nobody holds its pipes any more."""
    with suppress(ProcessLookupError):
        handle, is_over = os.pidfd_open(pid), asyncio.Event()
        asyncio.get_running_loop().add_reader(handle, is_over.set)
        try:
            await is_over.wait()
        finally:
            asyncio.get_running_loop().remove_reader(handle)
            os.close(handle)


def _kill_group(process: Process) -> None:
    with suppress(ProcessLookupError):
        os.killpg(process.pid, 9)


def command(attack: Attack, text: str, python: str) -> list[str]:
    """What runs a text: a shell, or an interpreter."""
    return ["sh", "-c", text] if attack.is_shell else [python, "-I", "-S", "-X", "utf8", "-c", text]
