"""An attempt's turns as bytes and back: JSON, then numbers; nothing that could run code when read.

The layout is: length of the JSON (4 bytes), the JSON, the integers of all turns (prompt, tokens, versions of each, as
int32), their logprobs (float32), and what the trainer must see again as safetensors, where there is any. Everything is
little-endian. One array for all turns, because an array costs more than its numbers.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Sequence
from typing import Any

import numpy as np
from safetensors.numpy import load, save

from strop.types import Message, Sampling, ToolCall, Turn

_INTEGER, _FLOAT = np.dtype("<i4"), np.dtype("<f4")


def encode_turns(turns: Sequence[Turn]) -> bytes:
    """Turns as bytes."""
    integers = [piece.astype(_INTEGER) for turn in turns for piece in (turn.prompt, turn.tokens, turn.versions)]
    logprobs = [turn.logprobs.astype(_FLOAT) for turn in turns]
    aux = {f"{i}.{name}": np.ascontiguousarray(each) for i, turn in enumerate(turns) for name, each in turn.aux.items()}
    head = json.dumps([_head(turn) for turn in turns]).encode()
    numbers = [piece.tobytes() for piece in (*integers, *logprobs)]
    return b"".join([len(head).to_bytes(4, "little"), head, *numbers, save(aux) if aux else b""])


def decode_turns(data: bytes) -> tuple[Turn, ...]:
    """The inverse of `encode_turns`."""
    start = 4 + int.from_bytes(data[:4], "little")
    heads = json.loads(data[4:start])
    sizes = [size for head in heads for size in (head["sizes"][0], head["sizes"][1], head["sizes"][1])]
    written = [head["sizes"][1] for head in heads]
    integers = np.frombuffer(data, _INTEGER, sum(sizes), start).astype(np.int64)
    logprobs = np.frombuffer(data, _FLOAT, sum(written), start + integers.size * _INTEGER.itemsize).astype(np.float32)
    rest = data[start + integers.size * _INTEGER.itemsize + logprobs.size * _FLOAT.itemsize :]
    aux = load(rest) if rest else {}
    read, said = _split(integers, sizes), _split(logprobs, written)
    return tuple(_turn(head, read[3 * i : 3 * i + 3], said[i], _own(aux, i)) for i, head in enumerate(heads))


def _split(array: Any, sizes: Sequence[int]) -> list[Any]:
    ends = [0, *itertools.accumulate(sizes)]
    return [array[low:high] for low, high in itertools.pairwise(ends)]


def _turn(head: dict[str, Any], integers: list[Any], logprobs: Any, aux: dict[str, Any]) -> Turn:
    prompt, tokens, versions = integers
    sampling = Sampling(**head["sampling"] | {"stop": tuple(head["sampling"]["stop"])})
    message, told = message_from(head["message"]), tuple(message_from(each) for each in head["told"])
    return Turn(prompt, tokens, logprobs, versions, message, sampling, head["fresh"], aux, head["given"], told)


def _own(aux: dict[str, Any], index: int) -> dict[str, Any]:
    return {name.removeprefix(f"{index}."): array for name, array in aux.items() if name.startswith(f"{index}.")}


def _head(turn: Turn) -> dict[str, Any]:
    return {
        "sizes": [len(turn.prompt), len(turn.tokens)],
        "message": plain_message(turn.message),
        "sampling": vars(turn.sampling),
        "fresh": turn.fresh,
        "given": turn.given,
        "told": [plain_message(each) for each in turn.told],
    }


def plain_message(message: Message) -> dict[str, Any]:
    """A message as JSON data; written out, because `dataclasses.asdict` is several times slower."""
    calls = [{"name": call.name, "arguments": call.arguments} for call in message.tool_calls]
    told = {"role": message.role, "content": message.content, "tool_calls": calls}
    return told | {"is_completion": True} if message.is_completion else told


def message_from(data: dict[str, Any]) -> Message:
    calls = tuple(ToolCall(**call) for call in data["tool_calls"])
    return Message(data["role"], data["content"], calls, data.get("is_completion", False))
