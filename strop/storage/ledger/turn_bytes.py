"""Serialization of a rollout's turns as JSON and arrays; reading it cannot execute code.

The layout is: length of the JSON (4 bytes), the JSON, the integers of all turns (prompt, tokens, versions of each, as
int32), their logprobs (float32), and as safetensors, where there is any, what the trainer must see again. Everything is
little-endian. All turns share one array, because an array costs more than its numbers.
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Sequence
from typing import Any

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load, save

from strop.models.tokens.picture_words import UNSEEN, runs_in, with_runs
from strop.types import IntArray, Message, Picture, Sampling, ToolCall, Turn

_INTEGER, _FLOAT = np.dtype("<i4"), np.dtype("<f4")
_NO_VERSION = -1  # of a token that no weights of the run wrote


def encode_turns(turns: Sequence[Turn]) -> bytes:
    """Turns as bytes."""
    integers = [piece.astype(_INTEGER) for turn in turns for piece in (_on_disk(turn), turn.tokens, turn.versions)]
    logprobs = [turn.logprobs.astype(_FLOAT) for turn in turns]
    aux = {f"{i}.{name}": np.ascontiguousarray(each) for i, turn in enumerate(turns) for name, each in turn.aux.items()}
    head = json.dumps([_head(turn) for turn in turns]).encode()
    numbers = [piece.tobytes() for piece in (*integers, *logprobs)]
    return b"".join([len(head).to_bytes(4, "little"), head, *numbers, save(aux) if aux else b""])


def _on_disk(turn: Turn) -> IntArray:
    """The prompt with a placeholder for each token of a picture."""
    return np.maximum(turn.prompt, UNSEEN)


def decode_turns(data: bytes) -> tuple[Turn, ...]:
    """The inverse of `encode_turns`; ValueError where these are no such bytes."""
    try:
        turns = _decoded(data)
    except (KeyError, TypeError, IndexError, OverflowError, RecursionError, SafetensorError) as error:
        raise ValueError(f"{type(error).__name__}: {error}") from error
    for turn in turns:
        _check(turn)
    return turns


def _check(turn: Turn) -> None:
    """Numbers that nothing else would warning: tokens that no model has, versions that never were."""
    if (turn.tokens < 0).any() or (turn.prompt == UNSEEN).any() or (turn.versions < _NO_VERSION).any():
        raise ValueError("a token or a version is negative")
    if not 0 <= turn.num_prefix <= len(turn.prompt):
        raise ValueError(f"{turn.num_prefix} tokens of a prompt of {len(turn.prompt)} begin the completion")


def _decoded(data: bytes) -> tuple[Turn, ...]:
    start = 4 + int.from_bytes(data[:4], "little")
    heads = json.loads(data[4:start])
    sizes = [size for head in heads for size in (head["sizes"][0], head["sizes"][1], head["sizes"][1])]
    if not all(type(size) is int and 0 <= size <= len(data) for size in sizes):
        raise ValueError(f"sizes of {len(data)} bytes are {str(sizes)[:100]}")
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
    if (prompt < UNSEEN).any():
        raise ValueError("a token is negative")
    prompt = with_runs(prompt, head["pictures"]) if "pictures" in head else prompt
    sampling = Sampling(**head["sampling"] | {"stop": tuple(head["sampling"]["stop"])})
    if not (_is_like(sampling, Sampling()) and type(head["fresh"]) is bool and type(head["given"]) is int):
        raise ValueError("how it was sampled is not told in numbers")
    message, told = message_from(head["message"]), tuple(message_from(each) for each in head["told"])
    return Turn(prompt, tokens, logprobs, versions, message, sampling, head["fresh"], aux, head["given"], told)


def _own(aux: dict[str, Any], index: int) -> dict[str, Any]:
    return {name.removeprefix(f"{index}."): array for name, array in aux.items() if name.startswith(f"{index}.")}


def _head(turn: Turn) -> dict[str, Any]:
    seen = {"pictures": runs_in(turn.prompt)} if (turn.prompt < 0).any() else {}
    return seen | {
        "sizes": [len(turn.prompt), len(turn.tokens)],
        "message": plain_message(turn.message),
        "sampling": vars(turn.sampling),
        "fresh": turn.fresh,
        "given": turn.num_prefix,
        "told": [plain_message(each) for each in turn.told],
    }


def plain_message(message: Message) -> dict[str, Any]:
    """A message as JSON data; written out, because `dataclasses.asdict` is several times slower."""
    calls = [{"name": call.name, "arguments": call.arguments} for call in message.tool_calls]
    told: dict[str, Any] = {"role": message.role, "content": message.content, "tool_calls": calls}
    if message.images:
        told["images"] = [[each.digest, each.width, each.height] for each in message.images]
    return told | {"is_completion": True} if message.is_completion else told


def message_from(data: dict[str, Any]) -> Message:
    calls = tuple(ToolCall(**call) for call in data["tool_calls"])
    words = [data["role"], data["content"], *(word for call in calls for word in vars(call).values())]
    if not all(isinstance(word, str) for word in words):
        raise ValueError("a message is made of texts")
    is_completion = data.get("is_completion", False)
    if not isinstance(is_completion, bool):
        raise ValueError("a message says by true or false whether a model wrote it")
    images = tuple(_picture(*each) for each in data.get("images", ()))
    return Message(data["role"], data["content"], calls, is_completion, images)


def _picture(digest: Any, width: Any, height: Any) -> Picture:
    is_digest = isinstance(digest, str) and re.fullmatch("[0-9a-f]{64}", digest)
    if not is_digest or type(width) is not int or type(height) is not int:
        raise ValueError("a picture is named by the SHA-256 of its bytes and its size")
    return Picture(digest, width, height)


def _is_like(found: Sampling, plain: Sampling) -> bool:
    """Whether each field has the type that it should have; a whole number is a number too."""
    kinds = {name: (int, float) if isinstance(value, float) else type(value) for name, value in vars(plain).items()}
    return all(isinstance(value, kinds[name]) for name, value in vars(found).items())
