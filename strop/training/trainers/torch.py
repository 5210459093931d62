"""Single-device PyTorch trainer: packed sequences, micro-batches that never change the gradient, AdamW."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from strop.backends import Objective
from strop.capabilities import inside
from strop.errors import CheckpointError, ConfigurationError, ModelError
from strop.models.layers.adapters import Unadapted
from strop.models.layers.eight_bit_linear import rounding
from strop.models.model import head_of, logits, parameters
from strop.models.tokens.mask_token import set_mask_token
from strop.roles import Loss, StepScale, Trainer, View
from strop.storage.picture_store import PictureStore
from strop.training.batch import Batch
from strop.training.machine.lora import RATE, save_adapters
from strop.training.machine.memory import Room, bytes_needed, compute_layers_again, free_bytes, settle
from strop.training.machine.old_policies import FILLED
from strop.training.machine.open_model import Opened, load_frozen, open_trainer
from strop.training.machine.settings import DTYPES, check, share_of_rate
from strop.training.machine.step_totals import MetricSums, StepSum, fetched, noting, refusal
from strop.training.machine.tokenizers import check_same_words, copy_tokenizer
from strop.training.policy_stats import take_statistics
from strop.training.requirements import Logits, Logprobs, Need, PolicyStatistic, folders, listed
from strop.types import FilePath, Group, Metrics
from strop.weights.shared_base_weights import Loan, Shared, readable

if TYPE_CHECKING:
    from strop.run import Run

_EARLIER = ("old", "averaged")  # policies without whole distributions


@dataclass
class TorchTrainer(Trainer):
    """Trainer in plain PyTorch; `dtype` is that of the forward pass, weights and moments are fp32 if memory allows."""

    learning_rate: float = 1e-4  # may change between two steps
    betas: tuple[float, float] = (0.9, 0.999)  # of Adam
    weight_decay: float = 0.0  # of AdamW
    warmup_steps: int = 0  # over which the learning rate rises
    schedule: str = "constant"  # of the learning rate from there on: constant, or linear or cosine to 0
    decay_steps: int = 0  # optimizer steps until 0, warm-up among them; 0: all of the run
    clip_norm: float | None = 1.0  # of a step's gradient; None: no limit
    max_tokens: int = 0  # of one micro-batch; 0: 32768 on a GPU, 4096 elsewhere
    chunk: int = 0  # rows of logits computed at once; 0: 4096 on a GPU, 1024 elsewhere
    device: str = "cpu"  # cpu or cuda
    dtype: str = "auto"  # bfloat16 on a GPU, float32 elsewhere
    reference: FilePath | None = None  # model folder; None: the weights at the start of training
    snapshots: int = 0  # past versions whose weights are kept; lag + 1 of them separate mismatch from staleness
    average_window: int = 0  # steps that the averaged policy spans
    step_scale: StepScale | None = None  # factor on the learning rate of each step
    fused: str = "auto"  # strop's fused kernels: on, off, or auto (bfloat16 on a GPU, a CPU with a compiler)
    checkpointing: str = "auto"  # gradient checkpointing: on, off, or auto (where memory requires it)
    lora: int = 0  # rank of LoRA adapters, trained at 10 times the learning rate; 0: full weights
    base: str = "plain"  # base weights under adapters: plain, or nf4 (4 bits)
    matmul_precision: str = "plain"  # of layers: plain, or fp8 (forward and backward, as in the engine)
    tower: str = "frozen"  # of a model that sees: frozen, or trained with the rest (lora=0)
    view: View | None = None  # reading order of a masked diffusion model; None: left to right
    bytes_per_weight: int = 0  # per trained weight without adapters: 18 (all float32), 10 or 6; 0: the most that fit
    borrowed: Shared | None = field(default=None, init=False, repr=False, compare=False)
    _opened: Opened | None = field(default=None, init=False, repr=False, compare=False)
    room: Room = field(default=Room(), init=False, repr=False, compare=False)
    store: PictureStore | None = field(default=None, init=False, repr=False, compare=False)  # of the run folder

    def __post_init__(self) -> None:
        is_gpu = self.device.startswith("cuda")
        self.max_tokens = self.max_tokens or (32768 if is_gpu else 4096)
        self.chunk = self.chunk or (4096 if is_gpu else 1024)
        self.dtype = self.dtype if self.dtype != "auto" else "bfloat16" if is_gpu else "float32"
        check(self)

    def problems(self, run: Run) -> list[str]:
        """Refuse a loss that needs another model whose folder does not exist."""
        asked = folders(need for loss in inside(run.losses, Loss) for need in loss.needs)
        return [f"a loss needs the model in {each}, which does not exist" for each in asked if not Path(each).is_dir()]

    def open(self, model: Path, seed: int) -> None:
        self._opened = open_trainer(self, model, model, seed)

    def keep_in(self, folder: Path) -> None:
        """Read pictures from a run folder; told before a model is opened."""
        self.store = PictureStore(folder)

    def expect(self, room: Room) -> None:
        """Memory that others on its device will take, set before it opens a model."""
        self.room = room

    def settle(self) -> None:
        """Choose gradient checkpointing and refuse what cannot fit, once the others on the GPU have allocated."""
        opened = self._ready()
        if opened.is_settled:
            return
        opened.is_settled, forward, model = True, opened.forward, opened.model
        if self.device.startswith("cuda"):
            free = free_bytes(self.device)
            free += sum(each.numel() * each.element_size() for each in opened.optimizer.moments().values())
            free -= self.room.others * opened.holding.frozen_bytes * sum(each.numel() for each in model.parameters())
            needed = partial(bytes_needed, model, opened.holding, self.chunk, forward.fast_path(model) is not None)
            found = settle(free, needed, self.checkpointing, self.max_tokens, self.room.longest)
            forward.is_checkpointed, self.max_tokens = found
        if forward.is_checkpointed and forward.fast_path(model) is None:
            compute_layers_again(model)

    def policy_statistic(self, groups: Sequence[Group], needs: frozenset[PolicyStatistic]) -> None:
        """Record the current policy's statistics on each rollout."""
        take_statistics(
            groups,
            needs,
            lambda name, batch, wanted: self._ready().forward.look(self._policy(name), batch.read_by(name), wanted),
            self.max_tokens,
        )

    def annotate(self, batches: Sequence[Batch], needs: frozenset[Need]) -> None:
        """Fill the needed quantities; logits only of reference, proximal and other models."""
        opened = self._ready()
        asked = [need for need in needs - FILLED if isinstance(need, Logprobs | Logits) and need.policy not in _EARLIER]
        if unknown := needs - FILLED - set(asked):
            raise ConfigurationError(f"TorchTrainer does not fill {listed(unknown)}")
        self.settle()
        for need in sorted(asked, key=str):
            self._fill(batches, need)
        opened.earlier.fill(opened.model, batches, needs)

    def step(self, batches: Sequence[Batch], objective: Objective) -> Metrics:
        """One optimizer step over all batches; weights change only if every loss and the gradient are finite."""
        if not batches:
            raise ConfigurationError("a step needs at least 1 batch, got 0: every rollout failed or was empty")
        self._ready().sum = None
        self.accumulate(batches, objective)
        return self.finish()

    def gradient(self, batches: Sequence[Batch], objective: Objective) -> dict[str, Tensor]:
        """Gradient of these batches by weight name, without a step."""
        (opened := self._ready()).sum = None
        self.accumulate(batches, objective)
        opened.sum = None
        return {name: each.grad.clone() for name, each in opened.optimizer.parameters.items() if each.grad is not None}

    def accumulate(self, batches: Sequence[Batch], objective: Objective, mass: float = 1.0) -> None:
        """Add `mass` times these batches' gradient to that of the step which `finish` makes."""
        opened = self._ready()
        if opened.sum is None:
            self.settle()
            opened.optimizer.zero_grad()
            opened.sum = StepSum(objective)
        so_far = opened.sum
        watched = objective if self.step_scale is None else noting(objective, so_far.log_weights)
        parts = [part for batch in batches for part in opened.at_once.parts(batch, so_far.scope)]
        self._backward(parts, watched, so_far, mass)

    def finish(self, mass: float = 1.0) -> Metrics:
        """The optimizer step on the accumulated gradient divided by the total mass."""
        opened = self._ready()
        if opened.sum is None:
            raise ConfigurationError("a step needs at least 1 batch, got 0: nothing was accumulated")
        whole, opened.sum = opened.sum, None
        losses, metric_sums = torch.stack(whole.losses), whole.metric_sums
        if mass != 1:
            opened.optimizer.divide(mass)
            losses, metric_sums = losses / mass, [(name, value / mass) for name, value in metric_sums]
        is_gpu = (norm := opened.optimizer.gradient_norm()).is_cuda
        if is_gpu:  # the norm is fetched only after the optimizer step is queued
            learning_rate = self._rate(whole.log_weights, metric_sums)
            opened.optimizer.step_unless_broken(learning_rate, norm, losses)
            opened.forward.refresh(opened.model)
        metrics, (*values, height) = fetched(metric_sums, [*losses, norm])
        if not math.isfinite(sum(values) + height):
            opened.optimizer.num_steps -= is_gpu
            self._refuse(whole.batches, values, height, whole.objective)
        if not is_gpu:
            scales: MetricSums = []
            learning_rate = self._rate(whole.log_weights, scales)
            metrics |= fetched(scales, [])[0]
            opened.optimizer.step(learning_rate, height)
        opened.optimizer.zero_grad()  # frees the gradients' memory until the next step
        opened.earlier.observe(metrics)
        if self.matmul_precision == "fp8":
            metrics["fp8/rounding"] = rounding(opened.model)
        return {**metrics, "loss": sum(values), "grad_norm": height, "learning_rate": learning_rate}

    def weights(self) -> dict[str, Tensor]:
        return parameters(self._ready().model)

    def borrow(self, shared: Loan | None) -> bool:
        """Train adapters over base weights shared with the engine, if its rank and format match."""
        found = readable(shared, self.device, DTYPES[self.dtype])
        is_alike = found is not None and found.rank == self.lora and found.is_packed == (self.base == "nf4")
        self.borrowed = found if is_alike else None
        return is_alike

    def lend(self) -> Shared | None:
        """The base weights under the adapters, if the fast path can read them."""
        opened = self._ready()
        return Shared(opened.model) if self.lora and opened.forward.fast_path(opened.model) is not None else None

    def save(self, folder: Path) -> None:
        """Write a Hugging Face model folder with the state needed to resume bit for bit."""
        opened = self._ready()
        if opened.forward.reading is not None:
            set_mask_token(opened.model, opened.forward.reading.mask, opened.forward.reading.places)
        if self.lora:
            save_adapters(opened.model, self.lora, opened.source, folder)
        else:
            opened.model.save_pretrained(folder)
        copy_tokenizer(opened.source, folder)
        opened.optimizer.save(folder, "trainer", opened.facts)
        opened.earlier.save(folder)

    def resume(self, folder: Path) -> None:
        before = self._ready()
        again = (before.source, before.seed, before.model if self.lora else None)
        if not self.lora:
            self._opened = None
            del before  # else two models would be in memory
        try:
            self._opened = open_trainer(self, folder, *again)
        except (OSError, ValueError, RuntimeError, ModelError) as error:
            raise CheckpointError(f"cannot read the model in {folder}: {error}") from error
        self._opened.optimizer.resume(folder, "trainer")
        self._opened.earlier.resume(folder)

    def _fill(self, batches: Sequence[Batch], need: Logprobs | Logits) -> None:
        """Fill one policy's logprobs, or the states from which its distributions are computed."""
        forward, policy, model = self._ready().forward, need.policy, self._policy(need.policy)
        if isinstance(need, Logprobs):
            forward.refresh(model)
            read = [batch.read_by(policy) for batch in batches]
            found = self._ready().at_once.on_tokens(read, partial(forward.logprobs, model))
            for batch, logprobs in zip(batches, found, strict=True):
                batch.fill(policy, logprobs)
            return
        head = head_of(model) if policy == "proximal" else partial(logits, model)
        for batch in batches:
            batch.frozen = {**batch.frozen, policy: forward.frozen(model, batch.read_by(policy), head)}

    def _policy(self, name: str) -> Any:
        """The model of a policy; frozen ones are loaded when first needed."""
        opened = self._ready()
        if name == "proximal":
            return opened.model
        is_unadapted = name == "reference" and self.lora and not self.reference
        if is_unadapted and opened.forward.fast_path(opened.model) is not None:
            opened.frozen.setdefault(name, Unadapted(opened.model))
        if name not in opened.frozen:
            folder = Path(name if name != "reference" else self.reference or opened.source)
            if name != "reference":
                check_same_words(opened.source, folder)
            products = self.matmul_precision if name == "reference" else "plain"
            opened.frozen[name] = load_frozen(folder, opened.holding.frozen, self.device, products)
        return opened.frozen[name]

    def _ready(self) -> Opened:
        if self._opened is None:
            raise ConfigurationError("TorchTrainer has no model: call open(model, seed) first")
        return self._opened

    def learning_rate_of(self, num_steps: int) -> float:
        """Linear warmup over `warmup_steps`, then by `schedule`; adapters have a multiple of it."""
        return self.learning_rate * (RATE if self.lora else 1) * share_of_rate(self, num_steps)

    def _rate(self, log_weights: Sequence[Tensor], metric_sums: MetricSums) -> float:
        """The learning rate of this step."""
        rate = self.learning_rate_of(self._ready().optimizer.num_steps)
        if self.step_scale is None:
            return rate
        scale = self.step_scale(torch.cat(list(log_weights)))
        metric_sums.append(("step_scale", scale))
        return rate * scale

    def _backward(self, batches: Sequence[Batch], objective: Objective, into: StepSum, mass: float = 1.0) -> None:
        """Add `mass` times the gradients, losses and metrics of these batches to the step's."""
        (opened := self._ready()).forward.refresh(opened.model)

        def loss_of(batch: Batch) -> tuple[Tensor, Metrics]:
            loss, found = opened.forward.loss(opened.model, batch, objective)
            return (loss, found) if mass == 1 else (loss * mass, {name: value * mass for name, value in found.items()})

        into.add(batches, opened.at_once.backward(batches, loss_of, list(opened.optimizer.parameters.values())))

    def _refuse(self, batches: Sequence[Batch], losses: list[float], norm: float, objective: Objective) -> None:
        """Report the batches behind a non-finite value, found one at a time."""
        opened = self._ready()
        guilty = [batch for batch, loss in zip(batches, losses, strict=True) if not math.isfinite(loss)]
        for batch in batches if not guilty else ():
            opened.optimizer.zero_grad()
            self._backward([batch], objective, StepSum(objective))
            if not math.isfinite(float(opened.optimizer.gradient_norm())):
                guilty.append(batch)
        opened.optimizer.zero_grad()
        raise refusal(opened.optimizer.num_steps + 1, len(batches), guilty or batches, sum(losses), norm)
