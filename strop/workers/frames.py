"""Messages over a pair of pipes: a JSON head and raw arrays, so that reading one cannot execute code."""

from __future__ import annotations

import asyncio
import json
import math
import operator
import os
import select
import struct
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Arrays: TypeAlias = Mapping[str, NDArray[Any]]

_LENGTHS = struct.Struct(">IQ")  # bytes of the head, bytes of all arrays
LONGEST = 1 << 32  # bytes; whoever says more has lost the thread
_SHOWN = 200
_PIECE = 1 << 20
_KINDS = "iufb"  # numbers only: a dtype of objects would be pointers


@dataclass(frozen=True, eq=False)
class Frame:
    """One message."""

    head: dict[str, Any]
    arrays: dict[str, NDArray[Any]] = field(default_factory=dict)


def encode(head: Mapping[str, Any], arrays: Arrays) -> bytes:
    """A message as bytes."""
    parts = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    layout = [[name, part.dtype.str, list(part.shape)] for name, part in parts.items()]
    text = json.dumps([head, layout]).encode()
    body = b"".join(part.tobytes() for part in parts.values())
    return _LENGTHS.pack(len(text), len(body)) + text + body


def decode(text: bytes, body: bytes) -> Frame:
    """A message from bytes that anybody may have written; ValueError where they are none."""
    try:
        match json.loads(text):
            case [dict(head), list(layout)]:
                return Frame(head, _arrays(layout, body))
    except (TypeError, SyntaxError, OverflowError, RecursionError) as error:
        raise ValueError(f"{type(error).__name__}: {error}") from None
    raise ValueError("a message is a head and a list of arrays")


def _arrays(layout: list[Any], body: bytes) -> dict[str, NDArray[Any]]:
    arrays, start = {}, 0
    for name, kind, shape in layout:
        dtype, count = np.dtype(str(kind)), math.prod(map(operator.index, shape))
        if dtype.kind not in _KINDS or count < 0:
            raise ValueError(f"an array of {kind} and shape {shape} has no place in a message"[:_SHOWN])
        arrays[str(name)] = np.frombuffer(body, dtype, count, start).reshape(shape).copy()
        start += count * dtype.itemsize
    if start != len(body):
        raise ValueError(f"arrays of {start} bytes are named and {len(body)} bytes are there")
    return arrays


class Frames:
    """Both directions of a connection over file descriptors; only `wait`, `take` and `answer` block."""

    def __init__(self, reading: int, writing: int, longest: int = LONGEST) -> None:
        self._reading, self._writing, self._longest = reading, writing, longest
        self._taken: deque[Frame] = deque()  # of those that `wait` brought
        self._incoming, self._outgoing = bytearray(), bytearray()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._is_waiting = False  # until the pipe takes more
        self._next: asyncio.Handle | None = None  # writing in the next pass
        for descriptor in (reading, writing):
            os.set_blocking(descriptor, False)

    def attach(self, receive: Callable[[Frame], None], end: Callable[[str], None]) -> None:
        """From now on the running loop reads; `end` is told once why nothing more comes, if not by the other's end."""
        self._loop = asyncio.get_running_loop()

        def read() -> None:
            try:
                for frame in self._arrived():
                    receive(frame)
            except EOFError:
                self.detach()
                end("")
            except ValueError as error:
                self.detach()
                end(f"answered with something that is no message: {error}")

        self._loop.add_reader(self._reading, read)
        self._write()

    def detach(self) -> None:
        if self._loop is not None and not self._loop.is_closed():
            self._loop.remove_reader(self._reading)
            self._loop.remove_writer(self._writing)
        if self._next is not None:
            self._next.cancel()  # the descriptor may soon be somebody else's
        self._loop = self._next = None

    def send(self, head: Mapping[str, Any], arrays: Arrays | None = None) -> None:
        """Write in the loop's next pass what was sent in this one; to a pipe that is broken, nothing."""
        self._outgoing += encode(head, arrays or {})
        if self._loop is None:
            self._write()
        elif self._next is None:
            self._next = self._loop.call_soon(self._write)

    def wait(self) -> list[Frame]:
        """Block until something has come; what is still to be written is written meanwhile."""
        while True:
            if frames := list(self._arrived()):
                return frames
            select.select([self._reading], [self._writing] if self._outgoing else [], [])
            self._write()

    def take(self) -> Frame:
        """The next message, however long it takes; EOFError when none will come."""
        while not self._taken:
            self._taken += self.wait()
        return self._taken.popleft()

    def answer(self, question: Frame, head: Mapping[str, Any], arrays: Arrays | None = None) -> None:
        """Say whose answer it is, and be done only when it is written."""
        self.send({"id": question.head["id"], **head}, arrays)
        self.flush()

    def flush(self) -> None:
        """Block until all is written, or nobody is there to read it."""
        self._write()
        while self._outgoing:
            select.select([], [self._writing], [])
            self._write()

    def arrived(self) -> list[Frame]:
        """Every whole message that can be had without waiting."""
        return list(self._arrived())

    def _write(self) -> None:
        self._next = None
        try:
            while self._outgoing:
                del self._outgoing[: os.write(self._writing, self._outgoing[:_PIECE])]
        except BlockingIOError:
            if self._loop is not None:
                self._loop.add_writer(self._writing, self._write)
                self._is_waiting = True
            return
        except OSError:  # the other side is gone; reading says so
            self._outgoing.clear()
        if self._loop is not None and self._is_waiting:
            self._loop.remove_writer(self._writing)
            self._is_waiting = False

    def _arrived(self) -> Iterator[Frame]:
        try:
            piece: bytes | None = os.read(self._reading, _PIECE)  # more than a pipe holds
        except BlockingIOError:
            piece = None
        self._incoming += piece or b""
        yield from self._whole()
        if piece == b"":
            raise EOFError("the other side is gone")

    def _whole(self) -> Iterator[Frame]:
        while len(self._incoming) >= _LENGTHS.size:
            text, body = _LENGTHS.unpack_from(self._incoming)
            if text + body > self._longest:
                raise ValueError(f"a message of {text + body} bytes is announced: something else writes to the pipe")
            start, end = _LENGTHS.size, _LENGTHS.size + text + body
            if len(self._incoming) < end:
                return
            whole = bytes(self._incoming[start:end])
            del self._incoming[:end]
            yield decode(whole[:text], whole[text:])
