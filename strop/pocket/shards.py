"""The corpus as flat token arrays, written ahead of the training by other processes.

A shard depends on its seed, number and size alone, so that any number of processes writes the same corpus.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import random
import time
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from strop.pocket.corpus import Author, Conversation
from strop.pocket.tokenizer import END, ROLES, TAGS, TOKEN_IDS, UNKNOWN

# every multi-character token gets a byte above ASCII, so that a text becomes tokens by one table look-up per byte
_BYTES = {token: chr(0x80 + number) for number, token in enumerate((END, *ROLES.values(), *TAGS))}
_TOKENS = {_BYTES.get(token, token): number for token, number in TOKEN_IDS.items()}
_TABLE = np.array([_TOKENS.get(chr(byte), TOKEN_IDS[UNKNOWN]) for byte in range(256)], dtype=np.uint8)


@dataclass(frozen=True, eq=False)
class Shard:
    """Conversations one after another: T tokens of S conversations."""

    tokens: NDArray[np.uint8]  # [T]
    trainable: NDArray[np.bool_]  # [T], the assistant's text and the end token it writes
    lengths: NDArray[np.int64]  # [S]


def encode(conversation: Conversation) -> tuple[bytes, bytes]:
    """The chat template's tokens of a conversation as bytes, and beside each 1 where it is trained on."""
    text, trained = [], []
    for number, message in enumerate(conversation.messages):
        content = message.content
        for tag in TAGS:
            content = content.replace(tag, _BYTES[tag])
        text.append(_BYTES[ROLES[message.role]] + content + _BYTES[END])
        is_trained = message.role == "assistant" and number >= conversation.trained_from
        trained.append(b"\0" + (b"\1" if is_trained else b"\0") * (len(content) + 1))
    return "".join(text).encode("latin-1"), b"".join(trained)


def write_shard(seed: int, number: int, size: int) -> Shard:
    """As many whole conversations as fit into `size` tokens."""
    return asyncio.run(_write_shard(random.Random(f"pocket/{seed}/{number}"), size))


async def _write_shard(stream: random.Random, size: int) -> Shard:
    task_generator = Author(stream)
    texts: list[bytes] = []
    masks: list[bytes] = []
    left = size
    while True:
        text, mask = encode(await task_generator.conversation())
        left -= len(text)
        if left < 0:
            break
        texts.append(text)
        masks.append(mask)
    tokens = _TABLE[np.frombuffer(b"".join(texts), dtype=np.uint8)]
    trainable = np.frombuffer(b"".join(masks), dtype=np.uint8).astype(np.bool_)
    return Shard(tokens, trainable, np.array([len(text) for text in texts], dtype=np.int64))


@dataclass
class Shards:
    """Shards in order, written by `workers` processes a few shards ahead of the reader."""

    seed: int
    size: int
    workers: int
    waited_seconds: float = field(default=0.0, init=False)

    def __iter__(self) -> Iterator[Shard]:
        # spawn: a forked child of a process that holds an accelerator may hang
        context = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(self.workers, mp_context=context) as pool:
            ahead: deque[Future[Shard]] = deque()
            number = 0
            try:
                while True:
                    while len(ahead) < 4 * self.workers:
                        ahead.append(pool.submit(write_shard, self.seed, number, self.size))
                        number += 1
                    yield self._waited(ahead.popleft())
            finally:
                for future in ahead:
                    future.cancel()

    def _waited(self, future: Future[Shard]) -> Shard:
        start = time.monotonic()
        shard = future.result()
        self.waited_seconds += time.monotonic() - start
        return shard
