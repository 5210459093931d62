"""Continuous-batching engine for any Hugging Face causal LM, in process and in plain torch.

Every step is one forward pass over the tokens whose keys are missing: one per decoding row, many for a new prompt or
after a weight update. Finished rows leave at once and waiting requests take their place (Orca, Yu et al. 2022); a
prefix that any row holds is not computed again; weights change between two steps (PipelineRL, AReaL).
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from strop.backends import EXPERTS, Completion, Stop, WeightVersion
from strop.errors import ConfigurationError, DeliveryError, nearest
from strop.generate.engines.cpu.block_step import block_step
from strop.generate.engines.cpu.compiled_llama import compiled_llama
from strop.generate.engines.cpu.decoder import Decoder
from strop.generate.engines.cpu.fused_cpu_step import whole_step
from strop.generate.engines.cpu.row_states import check_room
from strop.generate.engines.stops import StopStrings, end_tokens
from strop.generate.engines.yield_to_loop import PASSES, let_others_run
from strop.models.layers.decoder_part import has_tower
from strop.models.layers.eight_bit_linear import encoded, is_code, is_held, load_held
from strop.models.loading.load_weights import read_model
from strop.models.model import hidden_states, parameters
from strop.roles import Engine
from strop.storage.picture_store import PictureStore
from strop.types import IntArray, Sampling
from strop.weights.fingerprint import fingerprint

_STEP_TOKENS = 8192


@dataclass(eq=False)
class TorchRequest:
    """Request waiting for its completion."""

    prompt: IntArray  # [P]
    sampling: Sampling
    key: int
    future: asyncio.Future[Completion]


@dataclass
class TorchEngine(Engine):
    """Engine for up to `rows` concurrent sequences; with `keep_cache` running ones keep old keys across a weight
    update.
    """

    rows: int = 64  # completions decoded together
    device: str = "cpu"  # cpu or cuda
    dtype: str = "float32"  # of the weights
    keep_cache: bool = False  # over an update of the weights: quicker, and old keys stay
    matmul_precision: str = "plain"  # of layers: plain, or fp8: of 8-bit numbers, as the trainer's
    store: PictureStore | None = field(default=None, init=False, repr=False, compare=False)  # of the run folder
    version: int = field(init=False, repr=False, compare=False, default=0)
    _model: Any = field(init=False, repr=False, compare=False, default=None)
    _decoder: Decoder[TorchRequest] = field(init=False, repr=False, compare=False)
    _ends: IntArray = field(init=False, repr=False, compare=False)
    _strings: StopStrings = field(init=False, repr=False, compare=False)
    _waiting: deque[TorchRequest] = field(init=False, repr=False, compare=False, default_factory=deque)
    _pump: asyncio.Task[None] | None = field(init=False, repr=False, compare=False, default=None)

    def open(self, model: Path) -> None:
        """Read the model from a Hugging Face folder."""
        if self.rows < 1:
            raise ConfigurationError(f"an engine needs rows >= 1, got {self.rows}")
        self._model = load_held(model, named_dtype(self.dtype), self.device, self.matmul_precision)
        read = None if self.store is None else self.store.reader(model)
        forward: Any = partial(hidden_states, self._model, pictures=read)
        check_room(self._model, self.rows, self.device)
        if self.matmul_precision == "plain":
            compiled = whole_step(self._model) or compiled_llama(self._model)
            forward = compiled or block_step(self._model) or forward
        self._decoder = Decoder(self._model, forward, self.rows, _STEP_TOKENS, read)
        self._ends = end_tokens(self._model)
        self._strings = StopStrings(model)

    def keep_in(self, folder: Path) -> None:
        """Read pictures from a run folder; told before a model is opened."""
        self.store = PictureStore(folder)

    async def sample(self, prompt: IntArray, sampling: Sampling, key: int) -> Completion:
        """Continue `prompt`, together with whatever else is running."""
        prompt = np.asarray(prompt, dtype=np.int64)
        self._check(prompt, sampling)
        request = TorchRequest(prompt, sampling, key, asyncio.get_running_loop().create_future())
        if self._decoder.holds(key):
            self._waiting.appendleft(request)  # its keys are still here, and going on frees a row sooner than starting
        else:
            self._waiting.append(request)
        if self._pump is None or self._pump.done():
            self._pump = asyncio.create_task(self._run())
        try:
            return await request.future
        except asyncio.CancelledError:
            self._withdraw(request)
            raise

    async def load(self, version: WeightVersion) -> str:
        """Take new weights; nothing else runs meanwhile, so this is between two steps."""
        weights = parameters(self._model)
        copy_weights(read_weights(version.location, self._model), weights)
        self._decoder.renew(keep_active=self.keep_cache)
        self.version = version.step
        return fingerprint(weights)

    def abort(self, key: int) -> None:
        """End every request of this key as far as it got."""
        for request in [request for request in self._waiting if request.key == key]:
            self._waiting.remove(request)
            if not request.future.done():
                request.future.set_result(_nothing())
        for row, owner in enumerate(self._decoder.owners):
            if owner is not None and owner.key == key:
                self._finish(row, Stop.ABORTED)

    def hurry(self, keys: Sequence[int]) -> None:
        """A step waits for these: until they are done, nothing else is decoded."""
        self._decoder.hurry(keys)

    def forget(self) -> None:
        """Drop every kept prefix: from here on, bits do not depend on what was asked before."""
        self._decoder.forget()

    @property
    def num_generated(self) -> int:
        """Tokens sampled."""
        return self._decoder.num_generated

    @property
    def num_prefilled(self) -> int:
        """Tokens of prompts (and of recomputed contexts) that went through the model."""
        return self._decoder.num_prefilled

    @property
    def num_reused(self) -> int:
        """Tokens of prompts whose keys were already there."""
        return self._decoder.num_reused

    # ---- the pump

    async def _run(self) -> None:
        """Step while there is work; whatever goes wrong reaches everybody who waits."""
        try:
            has_finished = True
            while self._has_work:
                await let_others_run(PASSES if has_finished else 1)
                has_finished = self._has_work and self._step()  # they may all have left meanwhile
        except asyncio.CancelledError:
            self._dismiss(lambda request: request.future.cancel())
            raise
        except Exception as error:
            self._dismiss(partial(_fail, error))
            self._decoder.forget()  # keys may be half written

    @property
    def _has_work(self) -> bool:
        return bool(self._waiting) or bool(self._decoder.rows.is_active.any())

    def _step(self) -> bool:
        """One forward pass; answers whether some request ended with it."""
        rows = self._decoder.step(self._waiting, self.version)
        table = self._decoder.rows
        is_stopped = (table.tokens[rows, table.length[rows] - 1, None] == self._ends).any(1)
        for place in np.flatnonzero(table.has_strings[rows] & ~is_stopped):
            is_stopped[place] = self._has_stop_string(int(rows[place]))
        is_over = is_stopped | (table.length[rows] >= table.limit[rows])
        for place in np.flatnonzero(is_over):
            self._finish(int(rows[place]), Stop.STOP if is_stopped[place] else Stop.LENGTH)
        return bool(is_over.any())

    def _has_stop_string(self, row: int) -> bool:
        table, owner = self._decoder.rows, self._decoder.owners[row]
        if owner is None:
            return False
        completion = table.tokens[row, table.prompt[row] - owner.sampling.num_prefix : table.length[row]]
        return self._strings.is_complete(completion, owner.sampling.stop, owner.sampling.num_prefix)

    def _finish(self, row: int, stop: Stop) -> None:
        """Hand a row's completion over and free the row."""
        table, owner = self._decoder.rows, self._decoder.owners[row]
        written = slice(table.prompt[row], table.length[row])
        tokens, logprobs = table.tokens[row, written].copy(), table.logprobs[row, written].copy()
        routes = self._decoder.memory.routes(row, int(table.length[row]), int(table.computed[row]))
        aux = {} if routes is None else {EXPERTS: routes}
        completion = Completion(tokens, logprobs, table.versions[row, written].copy(), stop, aux)
        self._decoder.release(row)
        if owner is not None and not owner.future.done():
            owner.future.set_result(completion)

    def _withdraw(self, request: TorchRequest) -> None:
        """Forget a request that nobody waits for any more."""
        if request in self._waiting:
            self._waiting.remove(request)
        if request in self._decoder.owners:
            self._decoder.release(self._decoder.owners.index(request))

    def _dismiss(self, tell: Callable[[TorchRequest], object]) -> None:
        """Everybody leaves and is told why, so that nobody waits in vain."""
        requests = [*self._waiting, *(owner for owner in self._decoder.owners if owner is not None)]
        self._waiting.clear()
        for row in self._decoder.rows.active.tolist():
            self._decoder.release(row)
        for request in requests:
            if not request.future.done():
                tell(request)

    def _check(self, prompt: IntArray, sampling: Sampling) -> None:
        vocabulary = self._model.get_input_embeddings().weight.shape[0]
        sees = self.store is not None and has_tower(self._model.config)
        check_request(prompt, sampling, self._decoder.context, vocabulary, sees)
        if sampling.stop:
            self._strings.open()


def check_request(prompt: IntArray, sampling: Sampling, context: int, vocabulary: int, sees: bool = False) -> None:
    """Refuse what no engine could continue."""
    if not 0 < len(prompt) < context:
        raise ConfigurationError(f"a prompt must have 1 to {context - 1} tokens for this model, got {len(prompt)}")
    if prompt.min() < 0 and not sees:
        raise ConfigurationError(
            "the prompt holds a picture, which this engine or its model cannot read: use engine=torch and a model "
            "folder with a picture tower"
        )
    if prompt.max() >= vocabulary:
        raise ConfigurationError(
            f"token ids must be in 0..{vocabulary - 1} for this model, got {prompt.min()}..{prompt.max()}"
        )
    is_possible = sampling.temperature >= 0 and 0 < sampling.top_p <= 1 and sampling.top_k >= 0
    if not is_possible or sampling.max_tokens < 1:
        raise ConfigurationError(
            f"need temperature >= 0, 0 < top_p <= 1, top_k >= 0 and max_tokens >= 1, got {sampling}"
        )


def _fail(error: Exception, request: TorchRequest) -> None:
    request.future.set_exception(error)


def _nothing() -> Completion:
    """The completion of a request that never started."""
    return Completion(np.zeros(0, np.int64), np.zeros(0, np.float32), np.zeros(0, np.int64), Stop.ABORTED)


def named_dtype(name: str) -> torch.dtype:
    dtypes = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}
    if name not in dtypes:
        raise ConfigurationError(f"unknown dtype {name!r}: {nearest(name, dtypes)}")
    return dtypes[name]


def read_weights(location: Any, model: Any) -> Mapping[str, Tensor]:
    """Weights by name as the model holds them, from a mapping or from a Hugging Face folder of its architecture."""
    if not isinstance(location, str | Path | Mapping):
        raise DeliveryError(f"weights must be a folder or tensors by name, got {type(location).__name__}")
    given = location if isinstance(location, Mapping) else parameters(read_model(Path(location), model.dtype))
    return encoded(given) if any(map(is_held, model.modules())) and not any(map(is_code, given)) else given


@torch.no_grad()
def copy_weights(source: Mapping[str, Tensor], target: Mapping[str, Tensor]) -> None:
    """All or nothing: names and shapes are compared before the first weight changes."""
    check_fits(source, target)
    for name, tensor in target.items():
        tensor.copy_(source[name])


def check_fits(source: Mapping[str, Tensor], target: Mapping[str, Tensor]) -> None:
    """Refuse weights of other names or shapes."""
    if source.keys() != target.keys():
        missing, unknown = sorted(target.keys() - source.keys()), sorted(source.keys() - target.keys())
        raise DeliveryError(f"the weights do not fit: {len(missing)} missing {missing[:3]}, unknown {unknown[:3]}")
    for name, tensor in target.items():
        if source[name].shape != tensor.shape:
            raise DeliveryError(f"{name}: need shape {tuple(tensor.shape)}, got {tuple(source[name].shape)}")
