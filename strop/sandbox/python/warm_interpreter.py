"""Warm interpreter of the Python sandbox: forks one process per program, and never reads a program itself.

For each program it forks a supervisor, which reads the program, forks the confined process that runs it, supervises
that one and returns the result. Both end with the program, so that no process is used for two programs. Modules
imported here are available to programs.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import random
import select
import signal
import struct
import sys
import time
from contextlib import suppress
from typing import Any

from strop.sandbox.kernel_isolation.confine import KernelIsolation, confine, tie
from strop.sandbox.python.visible_files import PythonView
from strop.sandbox.resource_totals import Process, fills
from strop.sandbox.writable_folder import WritableFolder
from strop.workers.keeper import tie_to_parent

MODULES = (
    *("abc", "array", "ast", "base64", "bisect", "calendar", "cmath", "collections", "contextlib", "copy", "csv"),
    *(
        "dataclasses",
        "datetime",
        "decimal",
        "difflib",
        "enum",
        "fractions",
        "functools",
        "graphlib",
        "hashlib",
        "heapq",
    ),
    *("io", "itertools", "json", "math", "numbers", "operator", "pprint", "queue", "random", "re", "statistics"),
    *("string", "struct", "sys", "textwrap", "time", "traceback", "types", "typing", "unicodedata", "uuid", "zlib"),
)
HEAD = struct.Struct(">I")
NO_MEMORY = 77  # exit code of a program that asked for too much
_CHUNK = 1 << 16
_NOT_RUN = {"ending": "setup", "code": 0, "memory": 0, "seconds": 0.0}
_LOOK_SECONDS, _FOREVER = 0.02, 1e6
_SETUP_SECONDS = 20.0  # in which the isolation must stand; a machine may be busy


def main(view: PythonView | None) -> None:
    """Answer questions on standard input until there are none; programs see the view, or no file at all."""
    reading, writing = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDWR)
    for standard in (0, 1):
        os.dup2(nothing, standard)
    tie_to_parent(signal.SIGKILL)
    for name in MODULES:
        importlib.import_module(name)
    try:
        if view is not None:
            view.lay_out()
    except OSError as error:
        return _say(writing, {"problem": str(error)}, b"", b"")
    gc.freeze()
    _say(writing, {"problem": ""}, b"", b"")
    while select.select([reading], [], [])[0]:
        own, watcher = os.getpid(), os.fork()
        if not watcher:
            with suppress(EOFError, BrokenPipeError):
                tie(own)
                _answer(reading, writing)
                os._exit(0)
            os._exit(1)
        if os.waitpid(watcher, 0)[1]:
            os._exit(0)  # there is nobody to answer, or an answer is half written


def _answer(reading: int, writing: int) -> None:
    (size,) = HEAD.unpack(_exactly(reading, HEAD.size))
    question = json.loads(_exactly(reading, size))
    program, stdin = (_exactly(reading, question[name]) for name in ("program", "stdin"))
    given = os.memfd_create("stdin")
    os.truncate(given, len(stdin))
    os.pwrite(given, stdin, 0)
    (out, told), (err, complained), (ready, is_ready) = os.pipe(), os.pipe(), os.pipe()
    try:
        writable = WritableFolder(question["folder"]) if question["folder"] else None
    except OSError as error:
        return _say(writing, _NOT_RUN, b"", f"the folder cannot be written to: {error}".encode())
    own, child = os.getpid(), os.fork()
    if not child:
        tie(own)  # before it leaves the session, in which all are killed at once
        _become(question, program, (given, told, complained, is_ready), writable)
    for theirs in (given, told, complained, is_ready):
        os.close(theirs)
    watch = _Watch(child, (out, err, ready), question, writable)
    watch.until_the_end()
    if writable is not None and os.geteuid() == 0:
        writable.take_back()
    _say(writing, watch.usage, bytes(watch.said[out]), bytes(watch.said[err]))


class _Watch:
    """Reads what a program says, until it ends or passes what it may take; then nothing of it is left."""

    def __init__(
        self, child: int, pipes: tuple[int, int, int], may: dict[str, Any], writable: WritableFolder | None
    ) -> None:
        self._child, self._ready, self._writable = child, pipes[-1], writable
        self._seconds, self._most, self._disk = may["seconds"], may["output"], may["memory"]
        self._begun, self._until = time.monotonic(), time.monotonic() + _SETUP_SECONDS
        self._next_look = 0.0
        self.said = {pipe: bytearray() for pipe in pipes}
        self.usage: dict[str, Any] = {}

    def until_the_end(self) -> None:
        ending = self._listened()
        with suppress(ProcessLookupError):
            os.kill(self._child, signal.SIGKILL)
        _, status, used = os.wait4(self._child, 0)
        code = os.waitstatus_to_exitcode(status)
        ending = (ending or _named(code)) if self.said[self._ready] else "setup"
        seconds = time.monotonic() - self._begun
        self.usage = {"ending": ending, "code": code, "memory": used.ru_maxrss * 1024, "seconds": seconds}

    def _listened(self) -> str:
        """Why it must be ended; nothing, where it ended by itself."""
        open_ = set(self.said)
        while open_:
            if self._fills():
                return "disk"
            left = self._until - time.monotonic()
            found = select.select(list(open_), [], [], min(max(left, 0), self._pause()))[0]
            if not found and time.monotonic() >= self._until:
                return "timeout"
            for each in found:
                heard = os.read(each, _CHUNK)
                self.said[each] += heard
                if not heard:
                    open_.discard(each)
                elif each == self._ready:  # its isolation stands: from now on it is on the clock
                    self._begun = time.monotonic()
                    self._until = self._begun + self._seconds
                if len(self.said[each]) > self._most:
                    del self.said[each][self._most :]
                    return "output"
        return self._waited()

    def _waited(self) -> str:
        """It closed all that it could speak through, and may go on without."""
        while time.monotonic() < self._until:
            if self._fills():
                return "disk"
            info = os.waitid(os.P_PID, self._child, os.WEXITED | os.WNOWAIT | os.WNOHANG)
            if info is not None:
                return ""
            time.sleep(0.001)
        return "timeout"

    def _pause(self) -> float:
        """Until the folder is looked at again."""
        return _LOOK_SECONDS if self._writable is not None else _FOREVER

    def _fills(self) -> bool:
        """Whether it adds more to its folder than it may."""
        begun = time.monotonic()
        if self._writable is None or begun < self._next_look:
            return False
        is_full = fills(self._writable, self._disk, Process(f"/proc/{self._child}").holds())
        self._next_look = time.monotonic() + max(_LOOK_SECONDS, 4 * (time.monotonic() - begun))
        return is_full


def _named(code: int) -> str:
    by_signal = {-signal.SIGXCPU: "timeout", -signal.SIGKILL: "timeout", -signal.SIGSYS: "denied"}
    if code == NO_MEMORY:
        return "memory"
    return "finished" if code >= 0 else by_signal.get(signal.Signals(-code) * -1, "killed")


def _become(
    question: dict[str, Any], program: bytes, pipes: tuple[int, int, int, int], writable: WritableFolder | None
) -> None:
    """In the process that runs the program; never returns."""
    try:
        is_ready = os.dup2(pipes[3], 3, inheritable=False)
        for place, pipe in enumerate(pipes[:3]):
            os.dup2(pipe, place)
        os.closerange(4, 1 << 16)
        os.setsid()
        os.chdir("/")
        streams = [os.fdopen(place, mode, encoding="utf-8", errors="replace") for place, mode in enumerate("rww")]
        sys.stdin, sys.stdout, sys.stderr = streams
        sys.argv, sys.path[:] = ["program"], question["path"]
        random.seed(0)
        readable = tuple(question["readable"])
        confine(KernelIsolation(question["isolation"]), question["seconds"], question["memory"], readable, writable)
        for name in [name for name in sys.modules if name.partition(".")[0] == "strop"]:
            del sys.modules[name]
        os.write(is_ready, b"1")
        os.close(is_ready)
    except BaseException as error:
        with suppress(BaseException):
            os.write(2, f"{type(error).__name__}: {error}".encode())
        os._exit(1)
    os._exit(_run(program))


def _run(program: bytes) -> int:
    """Its exit code, as an interpreter would have it."""
    code = 0
    try:
        exec(compile(program, "<program>", "exec"), {"__name__": "__main__", "__builtins__": __builtins__})
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    except MemoryError:
        code = NO_MEMORY
    except BaseException:
        with suppress(BaseException):
            sys.excepthook(*sys.exc_info())
        code = 1
    with suppress(BaseException):
        sys.stdout.flush()
    with suppress(BaseException):
        sys.stderr.flush()
    return code & 0xFF


def _exactly(descriptor: int, size: int) -> bytes:
    found = bytearray()
    while len(found) < size:
        piece = os.read(descriptor, min(size - len(found), 1 << 20))
        if not piece:
            raise EOFError
        found += piece
    return bytes(found)


def _say(descriptor: int, head: dict[str, Any], out: bytes, err: bytes) -> None:
    text = json.dumps(head | {"stdout": len(out), "stderr": len(err)}).encode()
    message = memoryview(HEAD.pack(len(text)) + text + out + err)
    while message:
        message = message[os.write(descriptor, message) :]
