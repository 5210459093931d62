"""Engine for masked diffusion LMs (LLaDA, 2502.09992): each step unmasks the most confident tokens of a canvas.

Blocks are filled from left to right, positions within a block in any order: a token is sampled for every masked
position, and the most confident ones are kept. Each forward pass reads the whole canvas bidirectionally.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from strop.backends import Completion, Stop, WeightVersion
from strop.errors import ConfigurationError
from strop.generate.engines.cpu.torch_engine import check_request, copy_weights, named_dtype, read_weights
from strop.generate.engines.diffusion.diffusion_sequence import Canvas
from strop.generate.engines.sampling import draw
from strop.generate.engines.stops import end_tokens
from strop.generate.engines.yield_to_loop import PASSES, let_others_run
from strop.kernels.sampling.counter_random import as_key, uniforms
from strop.models.layers.attention import Packed
from strop.models.model import context_length, hidden_states, load_model, logits, parameters
from strop.models.tokens.mask_token import mask_token
from strop.roles import Engine
from strop.types import FloatArray, IntArray, Sampling
from strop.weights.fingerprint import fingerprint

_IN_VAIN = 64  # looks in a row that keep nothing, because the mask itself is drawn everywhere
_LOOK = np.int64(1) << 32  # a place is drawn anew in every look, with a random number of its own


@dataclass
class DiffusionEngine(Engine):
    """Engine for up to `rows` concurrent canvases; a canvas has `max_tokens` positions, within the context limit."""

    rows: int = 64  # completions filled together
    block: int = 32  # places that are filled before any behind them
    least: int = 1  # tokens that each step keeps, the surest
    sure: float = 1.0  # tokens of this probability are kept as well; 1: none
    device: str = "cpu"  # cpu or cuda
    dtype: str = "float32"  # of the weights
    version: int = field(init=False, repr=False, compare=False, default=0)
    num_generated: int = field(init=False, repr=False, compare=False, default=0)
    num_looks: int = field(init=False, repr=False, compare=False, default=0)  # of the model, at all canvases together
    _model: Any = field(init=False, repr=False, compare=False, default=None)
    _mask: int = field(init=False, repr=False, compare=False, default=0)
    _ends: IntArray = field(init=False, repr=False, compare=False)
    _canvases: list[Canvas] = field(init=False, repr=False, compare=False, default_factory=list)
    _pump: asyncio.Task[None] | None = field(init=False, repr=False, compare=False, default=None)

    goes_on: ClassVar[bool] = False  # a canvas says how much room there is

    def __post_init__(self) -> None:
        if min(self.rows, self.block, self.least) < 1 or not 0 < self.sure <= 1:
            raise ConfigurationError(f"DiffusionEngine needs rows, block, least >= 1 and 0 < sure <= 1, got {self}")

    def open(self, model: Path) -> None:
        """Read the model from a Hugging Face folder."""
        self._model = load_model(model, named_dtype(self.dtype), self.device).requires_grad_(False)
        self._mask, self._ends = mask_token(model), end_tokens(self._model)

    async def sample(self, prompt: IntArray, sampling: Sampling, key: int) -> Completion:
        """Fill a canvas behind `prompt`, together with whatever else is being filled."""
        prompt = np.asarray(prompt, dtype=np.int64)
        context = context_length(self._model)
        check_request(prompt, sampling, context, self._model.get_input_embeddings().weight.shape[0])
        if sampling.stop:
            raise ConfigurationError(
                f"DiffusionEngine ends a completion with an end token alone, got stop={sampling.stop}"
            )
        room = min(sampling.max_tokens, context - len(prompt))
        future: asyncio.Future[Completion] = asyncio.get_running_loop().create_future()
        canvas = Canvas(prompt, sampling, key, future, room, self.block, self._mask)
        self._canvases.append(canvas)
        if self._pump is None or self._pump.done():
            self._pump = asyncio.create_task(self._run())
        try:
            return await future
        except asyncio.CancelledError:
            if canvas in self._canvases:
                self._canvases.remove(canvas)
            raise

    async def load(self, version: WeightVersion) -> str:
        """Take new weights; nothing else runs meanwhile, so this is between two steps."""
        weights = parameters(self._model)
        copy_weights(read_weights(version.location, self._model), weights)
        self.version = version.step
        return fingerprint(weights)

    def abort(self, key: int) -> None:
        """End every request of this key with the blocks that are full."""
        for canvas in [each for each in self._canvases if each.key == key]:
            self._finish(canvas, Stop.ABORTED)

    def forget(self) -> None:
        """Nothing is kept between two requests."""

    # ---- the pump

    async def _run(self) -> None:
        """Step while there is work; whatever goes wrong reaches everybody who waits."""
        try:
            has_finished = True
            while self._canvases:
                await let_others_run(PASSES if has_finished else 1)
                has_finished = bool(self._canvases) and self._step(self._canvases[: self.rows])
        except asyncio.CancelledError:
            self._dismiss(lambda future: future.cancel())
            raise
        except Exception as error:
            failure = error
            self._dismiss(lambda future: future.set_exception(failure))

    def _dismiss(self, tell: Callable[[asyncio.Future[Completion]], object]) -> None:
        canvases, self._canvases = self._canvases, []
        for canvas in canvases:
            if not canvas.future.done():
                tell(canvas.future)

    def _finish(self, canvas: Canvas, stop: Stop) -> None:
        self._canvases.remove(canvas)
        completion = canvas.completion(stop)
        self.num_generated += len(completion.tokens)
        if not canvas.future.done():
            canvas.future.set_result(completion)

    def _step(self, canvases: Sequence[Canvas]) -> bool:
        """One look at these canvases; answers whether one of them is full now."""
        places = [canvas.open_places for canvas in canvases]
        tokens, logprobs, sureness = self._drawn(canvases, places)
        bounds = np.cumsum([0, *map(len, places)])
        for canvas, own, low, high in zip(canvases, places, bounds[:-1], bounds[1:], strict=True):
            kept = self._kept(tokens[low:high], sureness[low:high])
            canvas.keep(own[kept], tokens[low:high][kept], logprobs[low:high][kept], self.version, self._ends)
        for canvas in [each for each in canvases if each.in_vain > _IN_VAIN]:  # one prompt's trouble is no other's
            self._canvases.remove(canvas)
            if not canvas.future.done():
                said = f"the model draws its mask, token {self._mask}, and no other: is it taught?"
                canvas.future.set_exception(ConfigurationError(said))
        full = [canvas for canvas in canvases if canvas.is_full]
        for canvas in full:
            self._finish(canvas, Stop.STOP if canvas.is_ended else Stop.LENGTH)
        return bool(full)

    def _kept(self, tokens: IntArray, sureness: FloatArray) -> IntArray:
        """Which of one canvas's drawn tokens stay: the surest, and all that are sure enough; a drawn mask never."""
        chosen = np.flatnonzero(tokens != self._mask)
        chosen = chosen[np.argsort(-sureness[chosen], kind="stable")]
        is_sure = (sureness[chosen] >= self.sure) & (self.sure < 1)
        return chosen[is_sure | (np.arange(len(chosen)) < self.least)]

    @torch.no_grad()
    def _drawn(self, canvases: Sequence[Canvas], places: Sequence[IntArray]) -> tuple[IntArray, FloatArray, FloatArray]:
        """A token for every open place, its logprob and how sure the model is of it without temperature: [N] each."""
        self.num_looks += 1
        scores = self._scores(canvases, places)
        counts = [len(own) for own in places]
        how = [canvas.sampling for canvas in canvases]
        temperature = np.repeat(np.array([each.temperature for each in how], np.float32), counts)
        top_k = np.repeat(np.array([each.top_k for each in how], np.int64), counts)
        top_p = np.repeat(np.array([each.top_p for each in how], np.float32), counts)
        keys = np.repeat(np.array([as_key(canvas.key) for canvas in canvases]), counts)
        looks = np.repeat(np.array([canvas.looks for canvas in canvases], np.int64), counts)
        scores[torch.from_numpy(np.flatnonzero(temperature == 0)).to(scores.device), self._mask] = -torch.inf
        probabilities = uniforms(keys, np.concatenate(places) + looks * _LOOK)
        tokens, logprobs = draw(scores, temperature, top_k, top_p, probabilities)
        if not np.isfinite(logprobs).all():
            raise ConfigurationError("the model's logits are not finite")
        sureness = scores.softmax(-1).gather(1, torch.from_numpy(tokens).to(scores.device).unsqueeze(1)).squeeze(1)
        return tokens, logprobs, sureness.cpu().numpy()

    def _scores(self, canvases: Sequence[Canvas], places: Sequence[IntArray]) -> Tensor:
        """Of every token at the open places: [N, V] in float32."""
        sizes = np.array([len(canvas.tokens) for canvas in canvases])
        starts = np.cumsum(sizes) - sizes
        tokens = torch.from_numpy(np.concatenate([canvas.tokens for canvas in canvases])).to(self.device)
        positions = torch.from_numpy(np.concatenate([np.arange(size) for size in sizes])).to(self.device)
        plan = Packed(sizes, self.device, is_mutual=True)
        rows = np.concatenate([start + own for start, own in zip(starts, places, strict=True)])
        states = hidden_states(self._model, tokens, positions, plan)
        return logits(self._model, states[torch.from_numpy(rows).to(self.device)]).float()
