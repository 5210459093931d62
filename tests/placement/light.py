"""Engines without weights, quick to start in another process, that misbehave when asked to."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from strop.backends import Completion, Stop, WeightVersion
from strop.errors import ConfigurationError, ModelError
from strop.roles import Engine
from strop.types import Group, IntArray, Metrics, Sampling

DEADLY, STUCK, REFUSED, BROKEN, NOISY = 1001, 1002, 1003, 1004, 1005  # keys


@dataclass
class Letters(Engine):
    """Writes tokens that follow from key and position alone, at an admission, stamped with the version it holds."""

    seconds_per_token: float = 0.0
    refuses: str = ""  # what it finds wrong with any model
    is_lagging: bool = False  # answers with the fingerprint of the version before
    version: int = field(init=False, repr=False, compare=False, default=0)
    asked: list[int] = field(init=False, repr=False, compare=False, default_factory=list)  # keys
    _told: int = field(init=False, repr=False, compare=False, default=0)
    forgot: int = field(init=False, repr=False, compare=False, default=0)
    _hurried: set[int] = field(init=False, repr=False, compare=False, default_factory=set)
    _held: str = field(init=False, repr=False, compare=False, default="nothing")
    _aborted: set[int] = field(init=False, repr=False, compare=False, default_factory=set)

    def open(self, model: Path) -> None:
        if self.refuses:
            raise ModelError(f"{model}: {self.refuses}")

    async def sample(self, prompt: IntArray, sampling: Sampling, key: int) -> Completion:
        self.asked.append(key)
        self._misbehave(key)
        tokens: list[int] = []
        versions: list[int] = []
        while len(tokens) < sampling.max_tokens and key not in self._aborted:
            tokens.append(letter(key, len(prompt) + len(tokens)))
            versions.append(self.version)
            await asyncio.sleep(0 if key in self._hurried else self.seconds_per_token)
        stop = Stop.ABORTED if key in self._aborted else Stop.LENGTH
        self._aborted.discard(key)
        logprobs = -np.arange(len(tokens), dtype=np.float32)
        aux = {"place": len(prompt) + np.arange(len(tokens))}
        return Completion(np.array(tokens, np.int64), logprobs, np.array(versions, np.int64), stop, aux)

    async def load(self, version: WeightVersion) -> str:
        before, self._held, self.version = self._held, version.fingerprint, version.step
        return before if self.is_lagging else self._held

    def forget(self) -> None:
        self.forgot += 1

    def hurry(self, keys: list[int]) -> None:
        self._hurried = set(keys)

    def abort(self, key: int) -> None:
        self._aborted.add(key)

    def learn(self, groups: Sequence[Group]) -> Metrics:
        """Requests since it was last asked for them."""
        count, self._told = len(self.asked) - self._told, len(self.asked)
        return {"letters/asked": float(count)} if count else {}

    def _misbehave(self, key: int) -> None:
        if key == DEADLY:
            print("these are my last words", file=sys.stderr, flush=True)
            os._exit(7)
        if key == STUCK:
            time.sleep(600)
        if key == REFUSED:
            raise ConfigurationError("a prompt must have 1 to 9 tokens, got 10")
        if key == BROKEN:
            raise ValueError("no such thing")
        if key == NOISY:
            print("noise " * 20000, flush=True)


def letter(key: int, position: int) -> int:
    return (key * 31 + position * 7) % 97


def written(key: int, prompt: int, count: int) -> list[int]:
    """What a prompt of so many tokens is continued with."""
    return [letter(key, prompt + place) for place in range(count)]


async def hurried(engine: Any) -> int:
    """How much of a slow engine's answer comes for one that must hurry, while another is at the first of its tokens."""
    await engine.load(WeightVersion(0, "none", "folder"))  # it is up
    prompt, asked = np.arange(3), Sampling(max_tokens=100)
    slow, quick = (asyncio.create_task(engine.sample(prompt, asked, key)) for key in (1, 2))
    engine.hurry([2, 9])
    completion = await quick
    assert not slow.done()
    slow.cancel()
    await asyncio.gather(slow, return_exceptions=True)
    return len(completion.tokens)


@dataclass
class Keeping(Letters):
    """Keeps what it read and wrote, and says with each completion who it is and how much of the prompt was there."""

    _kept: list[IntArray] = field(init=False, repr=False, compare=False, default_factory=list)

    async def sample(self, prompt: IntArray, sampling: Sampling, key: int) -> Completion:
        found = max((common(prompt, context) for context in self._kept), default=0)
        written = await super().sample(prompt, sampling, key)
        self._kept.append(np.concatenate([prompt, written.tokens]))
        told = np.tile([os.getpid(), found], (len(written.tokens), 1))
        return Completion(written.tokens, written.logprobs, written.versions, written.stop, {"found": told})


def common(one: IntArray, other: IntArray) -> int:
    """How many tokens both begin with."""
    pairs = enumerate(zip(one.tolist(), other.tolist(), strict=False))
    return next((place for place, (own, theirs) in pairs if own != theirs), min(len(one), len(other)))
