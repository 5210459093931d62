"""The child's end of a killable process: frames (8 bytes of length, then a pickle) come in, JSON lines go out.

The parent, which wrote the pickles itself, never unpickles anything. Foreign code prints to stderr, whatever it
prints to.
"""

from __future__ import annotations

import json
import os
import pickle
import struct
from dataclasses import dataclass
from typing import Any, BinaryIO, TextIO

_LENGTH = struct.Struct(">Q")


def frame(message: Any) -> bytes:
    """A message as the child reads it."""
    body = pickle.dumps(message, protocol=5)
    return _LENGTH.pack(len(body)) + body


@dataclass(frozen=True)
class Pipes:
    """The protocol on descriptors that foreign code does not know."""

    frames: BinaryIO
    answers: TextIO

    @classmethod
    def take(cls) -> Pipes:
        """Move the protocol away from stdin, which becomes empty, and from stdout, which becomes stderr."""
        frames = os.fdopen(os.dup(0), "rb")
        answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
        nothing = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nothing, 0)
        os.close(nothing)
        os.dup2(2, 1)
        return cls(frames, answers)

    def read(self) -> Any:
        """The next message, or None when the parent is gone."""
        head = self.frames.read(_LENGTH.size)
        if len(head) < _LENGTH.size:
            return None
        return pickle.loads(self.frames.read(_LENGTH.unpack(head)[0]))

    def answer(self, message: dict[str, Any]) -> None:
        self.answers.write(json.dumps(message) + "\n")
        self.answers.flush()
