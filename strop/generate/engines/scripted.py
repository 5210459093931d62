"""Scripted engine for tests: canned completions at a fixed token rate on a virtual clock."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, TypeAlias

import numpy as np
from transformers import AutoTokenizer

from strop.backends import Completion, Stop, WeightVersion
from strop.errors import ConfigurationError
from strop.roles import Engine
from strop.types import IntArray, Sampling

Script: TypeAlias = Callable[[str, int], str] | Mapping[str, str]


@dataclass
class Scripted(Engine):
    """Completions by a function of (prompt, key), or by the entry found furthest right in the prompt ("" for other
    prompts).

    Time passes on the event loop's clock, so that a virtual clock skips hours at once. A weight update during a
    completion shows in the versions of its tokens, and an abort ends it there.
    """

    script: Script
    logprob: float = -1.0
    seconds_per_token: float = 0.0

    has_weights: ClassVar[bool] = False  # its logprobs are invented

    _tokenizer: Any = field(init=False, repr=False, compare=False, default=None)
    _version: int = field(init=False, repr=False, compare=False, default=0)
    _aborted: dict[int, asyncio.Event] = field(init=False, repr=False, compare=False, default_factory=dict)

    def open(self, model: Path) -> None:
        self._tokenizer = AutoTokenizer.from_pretrained(str(model), trust_remote_code=False, local_files_only=True)

    async def sample(self, prompt: IntArray, sampling: Sampling, key: int) -> Completion:
        """The scripted completion with an end token, cut at the token limit or after a stop string."""
        begun = self._tokenizer.decode(prompt[len(prompt) - sampling.num_prefix :].tolist())
        planned, stop = self._plan(
            self._completion(self._tokenizer.decode(prompt[prompt >= 0].tolist()), key), sampling, begun
        )
        versions = await self._pass_time(len(planned), key)
        if len(versions) < len(planned):
            planned, stop = planned[: len(versions)], Stop.ABORTED
        tokens = np.array(planned, dtype=np.int64)  # [N]
        logprobs = np.full(len(tokens), self.logprob, dtype=np.float32)
        return Completion(tokens, logprobs, np.array(versions, dtype=np.int64), stop)

    async def load(self, version: WeightVersion) -> str:
        """Stamp later tokens with this version; there are no weights, so the fingerprint is taken at its word."""
        self._version = version.step
        return version.fingerprint

    def forget(self) -> None:
        """There is nothing to forget."""

    def abort(self, key: int) -> None:
        if key in self._aborted:
            self._aborted[key].set()

    def _completion(self, prompt: str, key: int) -> str:
        if not isinstance(self.script, Mapping):
            return self.script(prompt, key)
        at, best = max(((prompt.rfind(text) if text else 0, text) for text in self.script), default=(-1, ""))
        if at < 0:
            raise ConfigurationError(f"the script knows no completion to a prompt that ends with {prompt[-80:]!r}")
        return self.script[best]

    def _plan(self, completion: str, sampling: Sampling, begun: str) -> tuple[list[int], Stop]:
        whole, size = begun + completion, len(begun)
        places = {text: whole.find(text, max(size - len(text) + 1, 0)) for text in sampling.stop}
        ends = [place + len(text) - size for text, place in places.items() if place >= 0]
        written = completion[: min(ends)] if ends else completion
        tokens: list[int] = self._tokenizer(written, add_special_tokens=False)["input_ids"]
        if not ends:
            tokens = [*tokens, self._tokenizer.eos_token_id]
        return tokens[: sampling.max_tokens], Stop.STOP if len(tokens) <= sampling.max_tokens else Stop.LENGTH

    async def _pass_time(self, count: int, key: int) -> list[int]:
        """Wait for each token and note the version behind it; ends early when aborted."""
        if not self.seconds_per_token:
            await asyncio.sleep(0)  # others get their turn, as with a real engine
            return [self._version] * count
        self._aborted[key] = asyncio.Event()
        versions: list[int] = []
        try:
            while len(versions) < count and not await self._is_aborted_within(self.seconds_per_token, key):
                versions.append(self._version)
        finally:
            del self._aborted[key]
        return versions

    async def _is_aborted_within(self, seconds: float, key: int) -> bool:
        try:
            await asyncio.wait_for(self._aborted[key].wait(), seconds)
        except TimeoutError:
            return False
        return True
