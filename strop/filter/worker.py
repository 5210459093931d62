"""The process in which rewards run, so that one that hangs, dies or forks can be killed.

It reads frames (8 bytes of length, then a pickle) on stdin and answers with one JSON line each: the parent, which
wrote the pickles itself, never unpickles anything. Rewards print to stderr, whatever they print to.
"""

from __future__ import annotations

import json
import os
import pickle
import resource
import struct
import sys
from collections.abc import Sequence
from typing import Any, BinaryIO, TextIO

from strop.filter.keeper import fork_kept, has_children
from strop.filter.marks import Fault, marked, to_json
from strop.roles import Reward

LENGTH = struct.Struct(">Q")
_LEFT = Fault("left a process running", is_whole=True)


def frame(message: Any) -> bytes:
    """A message as the worker reads it."""
    body = pickle.dumps(message, protocol=5)
    return LENGTH.pack(len(body)) + body


def main() -> None:
    """Load the rewards, say so, then mark groups until stdin ends."""
    fork_kept()
    frames, answers = _private_pipes()
    setup = _read(frames)
    if setup is None:
        return
    sys.path[:] = setup["path"]
    if setup["memory_bytes"]:
        resource.setrlimit(resource.RLIMIT_AS, (setup["memory_bytes"], setup["memory_bytes"]))
    rewards = _loaded(setup["rewards"], answers)
    while rewards is not None and (request := _read(frames)) is not None:
        index, group = request
        marks = marked(rewards[index], group)
        is_alone = not has_children()
        _answer(answers, {"marks": to_json(marks if is_alone else [_LEFT] * len(marks)), "is_alone": is_alone})


def _private_pipes() -> tuple[BinaryIO, TextIO]:
    """Move the protocol to descriptors that rewards do not know; stdin becomes empty and stdout becomes stderr."""
    frames = os.fdopen(os.dup(0), "rb")
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    return frames, answers


def _read(frames: BinaryIO) -> Any:
    """The next message, or None when the parent is gone."""
    head = frames.read(LENGTH.size)
    if len(head) < LENGTH.size:
        return None
    return pickle.loads(frames.read(LENGTH.unpack(head)[0]))


def _answer(answers: TextIO, message: dict[str, Any]) -> None:
    answers.write(json.dumps(message) + "\n")
    answers.flush()


def _loaded(pickled: Sequence[bytes], answers: TextIO) -> list[Reward] | None:
    """The rewards, warmed up by their `open` where they have one; imports are not on any attempt's clock."""
    rewards: list[Reward] = []
    for body in pickled:
        try:
            rewards.append(pickle.loads(body))
            getattr(rewards[-1], "open", lambda: None)()
        except Exception as error:
            _answer(answers, {"ready": False, "index": len(rewards) - 1, "error": f"{type(error).__name__}: {error}"})
            return None
    _answer(answers, {"ready": True})
    return rewards


if __name__ == "__main__":
    main()
