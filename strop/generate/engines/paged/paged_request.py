"""Request of the paged engine: prompt, tokens so far, and end conditions."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from strop.backends import EXPERTS, Completion, Stop
from strop.errors import ConfigurationError
from strop.generate.engines.paged.block_manager import pages_for
from strop.generate.engines.stops import StopStrings
from strop.types import FloatArray, IntArray, Sampling


@dataclass(eq=False)
class Request:
    """Request waiting for its completion; its keys are recomputed when weights change."""

    prompt: int  # tokens it began with
    tokens: IntArray  # [N], prompt and what was written so far
    logprobs: FloatArray  # [N], 0 over the prompt
    versions: IntArray  # [N]
    sampling: Sampling
    key: int
    future: asyncio.Future[Completion]
    limit: int
    slot: int = -1
    known: int = 0  # tokens that stand in its slot at least
    promised: int = 0  # and that will once all steps that were asked for are done, unless it ends before
    pages: list[int] = field(default_factory=list)
    shown: int = 0  # pages that the device knows of
    stood: int = 0  # tokens that stood in its slot when they were read last; a string may have cut them
    epoch: int = 0
    came: int = 0  # tokens that it sat down with
    stem: bytes = b""  # what its prompt is known by, see `pages.stem_of`
    checked: int = 0  # tokens already looked through for stop strings
    routes: NDArray[np.int16] | None = None  # [N, R], experts that its tokens went through

    def completion(self, stop: Stop) -> Completion:
        written = slice(self.prompt, None)
        aux = {} if self.routes is None else {EXPERTS: self.routes[: len(self.tokens)]}
        return Completion(self.tokens[written], self.logprobs[written], self.versions[written], stop, aux)

    def take(self, tokens: IntArray, logprobs: FloatArray, versions: IntArray) -> None:
        """All tokens so far [N], and what is known of the new ones."""
        self.tokens, self.stood = tokens, len(tokens)
        self.logprobs = np.concatenate((self.logprobs, logprobs))
        self.versions = np.concatenate((self.versions, versions))

    def lesson(self, version: int) -> tuple[int, int, int, int]:
        """Slot, tokens in it, how many of the newest this version wrote since it sat down, and what was cut behind."""
        newest = int((self.versions[self.came :] == version).sum())
        return self.slot, len(self.tokens), newest, self.stood - len(self.tokens)

    def is_cut_at_string(self, strings: StopStrings) -> bool:
        """Whether a stop string is complete in its new tokens; it then ends there."""
        begin, begun = max(self.prompt, self.checked), self.sampling.num_prefix
        for end in range(begin + 1, len(self.tokens) + 1):
            if strings.is_complete(self.tokens[self.prompt - begun : end], self.sampling.stop, begun):
                self.tokens, self.logprobs, self.versions = self.tokens[:end], self.logprobs[:end], self.versions[:end]
                return True
        self.checked = len(self.tokens)
        return False

    def ending(self, strings: StopStrings, ends: frozenset[int]) -> Stop | None:
        """STOP at an end token or a stop string, LENGTH at the limit; None: it has not ended."""
        if self.sampling.stop and self.is_cut_at_string(strings):
            return Stop.STOP
        if len(self.tokens) > self.prompt and int(self.tokens[-1]) in ends:
            return Stop.STOP
        return Stop.LENGTH if len(self.tokens) >= self.limit else None

    def answer(self, stop: Stop) -> None:
        if not self.future.done():
            self.future.set_result(self.completion(stop))

    def fail(self, error: Exception) -> None:
        self.future.set_exception(error)


def new_request(prompt: IntArray, sampling: Sampling, key: int, context: int, num_pages: int) -> Request:
    """One that fits an engine with contexts of so many tokens and so many pages of keys, of which one is nobody's."""
    limit = min(len(prompt) + sampling.max_tokens, context)
    if pages_for(limit) >= num_pages:
        raise ConfigurationError(
            f"a context of {limit} tokens needs {pages_for(limit)} pages, and there are {num_pages - 1}: "
            "give the engine more cache_tokens or memory"
        )
    nothing = np.zeros(len(prompt), np.float32), np.full(len(prompt), -1, np.int64)
    future: asyncio.Future[Completion] = asyncio.get_running_loop().create_future()
    return Request(len(prompt), prompt, *nothing, sampling, key, future, limit)
