"""vLLM as an engine, for model families without a fast path and for models on several GPUs.

It runs in this process, without a server, one step at a time, so that requests come, go and survive weight updates
between two steps as in the other engines. Sampling is strop's (`vllm_draw`), so the same key gives the same tokens.
After every update each worker's weights are compared with the published ones (`vllm_worker`): a different name, shape
or bit stops the run. Prefix hashes are salted with the weight version, so no key of other weights is ever reused;
running requests recompute theirs, unless `keep_cache` is set.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from torch import Tensor

from strop.backends import Completion, Stop, WeightVersion
from strop.errors import ConfigurationError, DeliveryError, EngineError, NumericsError, StropError
from strop.generate.engines.cpu.torch_engine import check_fits, check_request, named_dtype, read_weights
from strop.generate.engines.stops import StopStrings, end_tokens
from strop.generate.engines.vllm.vllm_request import VllmRequest
from strop.generate.engines.vllm.vllm_start import problem_of_device, problem_of_vllm, started
from strop.generate.engines.yield_to_loop import PASSES, let_others_run
from strop.models.loading.load_weights import skeleton
from strop.models.model import context_length, parameters
from strop.models.tokens.mask_token import refuse_masks
from strop.roles import Engine
from strop.types import IntArray, Sampling
from strop.weights.mapped_memory import Alternating, SharedWeights

if TYPE_CHECKING:
    from strop.run import Run

_LONGEST = 8192  # tokens of a context, where the model allows more and nobody asked for more


@dataclass
class VllmEngine(Engine):
    """Engine for up to `rows` concurrent sequences; with `keep_cache` running ones keep old keys across a weight
    update.
    """

    rows: int = 256  # completions decoded together
    device: str = "cuda"  # or cpu: what the installed vLLM is built for
    dtype: str = "bfloat16"  # of the weights
    keep_cache: bool = False  # over an update of the weights: quicker, and old keys stay
    tensor_parallel: int = 1  # GPUs that share each layer
    context: int = 0  # tokens of the longest context; 0: the model's, at most 8192
    memory: float = 0.4  # share of a GPU's memory for weights and keys
    version: int = field(init=False, repr=False, compare=False, default=0)
    num_generated: int = field(init=False, repr=False, compare=False, default=0)  # tokens sampled
    num_prefilled: int = field(init=False, repr=False, compare=False, default=0)  # tokens of prompts computed
    num_reused: int = field(init=False, repr=False, compare=False, default=0)  # tokens of prompts found computed
    _vllm: Any = field(init=False, repr=False, compare=False, default=None)
    _model: Any = field(init=False, repr=False, compare=False, default=None)  # without weights: names, shapes, limits
    _ends: list[int] = field(init=False, repr=False, compare=False, default_factory=list)
    _limit: int = field(init=False, repr=False, compare=False, default=0)
    _strings: StopStrings = field(init=False, repr=False, compare=False)
    _running: dict[str, VllmRequest] = field(init=False, repr=False, compare=False, default_factory=dict)
    _numbers: Iterator[int] = field(init=False, repr=False, compare=False, default_factory=itertools.count)
    _epoch: int = field(init=False, repr=False, compare=False, default=0)  # how often prefixes were forgotten
    _buffers: Alternating = field(init=False, repr=False, compare=False, default_factory=Alternating)
    _pump: asyncio.Task[None] | None = field(init=False, repr=False, compare=False, default=None)

    # ---- the engine's role

    def problems(self, run: Run) -> list[str]:
        """What is refused before anything is loaded."""
        return [problem] if (problem := problem_of_vllm()) else []

    def open(self, model: Path) -> None:
        """Start vLLM on a Hugging Face folder, and look whether all its weights can be read back."""
        if self.rows < 1 or self.tensor_parallel < 1:
            raise ConfigurationError(
                f"an engine needs rows >= 1 and tensor_parallel >= 1, got {self.rows} and {self.tensor_parallel}"
            )
        refuse_masks(model)
        dtype = named_dtype(self.dtype)
        if problem := problem_of_vllm() or problem_of_device(self.device, self.tensor_parallel):
            raise ConfigurationError(problem)
        self._model = skeleton(model, dtype)
        self._ends = end_tokens(self._model).tolist()
        self._strings = StopStrings(model)
        self._limit = self.context or min(context_length(self._model), _LONGEST)
        settings = {"max_num_seqs": self.rows, "dtype": self.dtype, "max_model_len": self._limit}
        settings |= {"tensor_parallel_size": self.tensor_parallel, "gpu_memory_utilization": self.memory}
        self._vllm = started(model, self.device, settings)
        self._vllm.set_weight_version(str(self.version))
        try:
            self._held()
        except StropError as error:
            self._end()
            raise ConfigurationError(f"{model} cannot be used with vLLM: {error}") from error

    async def sample(self, prompt: IntArray, sampling: Sampling, key: int) -> Completion:
        """Continue `prompt`, together with whatever else is running."""
        prompt = np.asarray(prompt, dtype=np.int64)
        check_request(prompt, sampling, self._limit, self._model.get_input_embeddings().weight.shape[0])
        if sampling.stop:
            self._strings.open()
        future: asyncio.Future[Completion] = asyncio.get_running_loop().create_future()
        request = VllmRequest("", prompt, sampling, key, future)
        self._add(request)
        if self._pump is None or self._pump.done():
            self._pump = asyncio.create_task(self._run())
        try:
            return await future
        except asyncio.CancelledError:
            self._withdraw(request)
            raise

    async def load(self, version: WeightVersion) -> str:
        """Take new weights between two steps and answer with the fingerprint of what the workers then hold."""
        weights = read_weights(version.location, self._model)
        check_fits(weights, parameters(self._model))
        self._renew()
        self._hand_over(weights)
        answer = self._held()
        self.version = version.step
        self._vllm.set_weight_version(str(version.step))
        self._start_anew()
        return answer

    def abort(self, key: int) -> None:
        """End every request of this key as far as it got."""
        for request in [each for each in self._running.values() if each.key == key]:
            self._withdraw(request)
            request.answer(Stop.ABORTED)

    def forget(self) -> None:
        """Drop every kept prefix: nobody will ask for the old salt again."""
        self._epoch += 1

    async def close(self) -> None:
        """End vLLM and its workers; whoever still waits is told."""
        self._dismiss(partial(_fail, EngineError("the engine is closed")))
        self._end()

    def _end(self) -> None:
        vllm, self._vllm = self._vllm, None
        if vllm is not None:
            vllm.engine_core.shutdown()

    # ---- weights

    def _renew(self) -> None:
        """See to it that no key of the old weights is read again, but by those who may keep theirs."""
        if not self.keep_cache and not self._vllm.reset_prefix_cache(reset_running_requests=True):
            raise DeliveryError(
                f"vLLM kept its prefix cache when the weights of version {self.version} were replaced: "
                f"{len(self._running)} requests run"
            )

    @property
    def _salt(self) -> str:
        """What prefixes are known by, beside their tokens."""
        return f"{self.version}.{self._epoch}"

    def _start_anew(self) -> None:
        """Whoever has written nothing yet asks again, with the salt of the new version."""
        for request in [each for each in self._running.values() if not each.tokens]:
            self._withdraw(request)
            self._add(request)

    def _hand_over(self, weights: Mapping[str, Tensor]) -> None:
        """To the worker in this process as tensors, to those in others as an address in shared memory."""
        if self.tensor_parallel == 1:
            self._vllm.collective_rpc("strop_take", args=(weights,))
        else:
            shared = weights if isinstance(weights, SharedWeights) else self._buffers.write(weights)
            self._vllm.collective_rpc("strop_map", args=(shared.address,))

    def _held(self) -> str:
        """The fingerprint of what the workers really hold."""
        shapes = {name: tuple(each.shape) for name, each in parameters(self._model).items()}
        return str(self._vllm.collective_rpc("strop_held", args=(shapes,))[0])

    # ---- requests

    def _add(self, request: VllmRequest) -> None:
        from vllm import SamplingParams
        from vllm.sampling_params import RequestOutputKind

        sampling = request.sampling
        drawn = {"key": request.key, "prompt": len(request.prompt), "temperature": sampling.temperature}
        drawn |= {"top_k": sampling.top_k, "top_p": sampling.top_p}
        asked = SamplingParams(
            temperature=0.0,  # `vllm_draw` leaves one token, whichever it drew
            max_tokens=min(sampling.max_tokens, self._limit - len(request.prompt)),
            stop_token_ids=self._ends,
            ignore_eos=True,
            logprobs=0,
            flat_logprobs=True,
            detokenize=False,
            output_kind=RequestOutputKind.DELTA,
            extra_args=drawn,
        )
        request.name = str(next(self._numbers))
        prompt = {"prompt_token_ids": request.prompt.tolist(), "cache_salt": self._salt}
        self._vllm.add_request(request.name, prompt, asked)
        self._running[request.name] = request  # only now: whoever is refused is not waited for

    def _withdraw(self, request: VllmRequest) -> None:
        if self._running.pop(request.name, None) is not None:
            self._vllm.abort_request([request.name])

    async def _run(self) -> None:
        """Step while there is work; whatever goes wrong reaches everybody who waits."""
        try:
            has_finished = True
            while self._running:
                await let_others_run(PASSES if has_finished else 1)
                has_finished = bool(self._running) and self._step()  # they may all have left meanwhile
        except asyncio.CancelledError:
            self._dismiss(lambda request: request.future.cancel())
            raise
        except StropError as error:
            self._dismiss(partial(_fail, error))
        except Exception as error:
            self._dismiss(partial(_fail, EngineError(f"vLLM failed: {type(error).__name__}: {error}")))

    def _step(self) -> bool:
        """One forward pass; answers whether some request ended with it."""
        has_finished = False
        for output in self._vllm.step():
            request = self._running.get(output.request_id)
            if request is not None:
                has_finished |= self._take(request, output)
        return has_finished

    def _take(self, request: VllmRequest, output: Any) -> bool:
        """What one step wrote for a request; answers whether that ended it."""
        [new] = output.outputs
        if not request.tokens:
            self.num_reused += output.num_cached_tokens or 0
            self.num_prefilled += len(request.prompt) - (output.num_cached_tokens or 0)
        logprobs = list(new.logprobs.logprobs) if new.token_ids else []
        if not np.isfinite(logprobs).all() or len(logprobs) != len(new.token_ids):
            raise NumericsError(f"the model's logits are not finite at version {self.version}")
        request.tokens += new.token_ids
        request.logprobs += logprobs
        request.versions += [self.version] * len(logprobs)
        self.num_generated += len(logprobs)
        is_cut = bool(request.sampling.stop) and self._strings.is_complete(
            request.completion, request.sampling.stop, request.sampling.num_prefix
        )
        if not output.finished and not is_cut:
            return False
        if output.finished:
            request.check_spans(new)
            del self._running[request.name]
        else:
            self._withdraw(request)
        request.answer(Stop.STOP if is_cut or new.finish_reason == "stop" else Stop.LENGTH)
        return True

    def _dismiss(self, tell: Callable[[VllmRequest], object]) -> None:
        """Everybody leaves and is told why, so that nobody waits in vain."""
        for request in list(self._running.values()):
            self._withdraw(request)
            if not request.future.done():
                tell(request)
        self.forget()  # keys may be half written


def _fail(error: Exception, request: VllmRequest) -> None:
    request.future.set_exception(error)
