"""Process of one rank of a distributed trainer: holds a shard of the weights and executes the trainer's commands."""

from __future__ import annotations

import math
import time
import traceback
from collections import defaultdict
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from safetensors.torch import save_file
from torch import Tensor
from torch.distributed.device_mesh import init_device_mesh

from strop.backends import Objective
from strop.errors import CheckpointError, ModelError, StropError
from strop.models import torch_setup
from strop.models.model import load_model
from strop.models.optimizers.adamw import Optimizer, read_state, write_state
from strop.models.tokens.mask_token import set_mask_token
from strop.training.batch import Batch
from strop.training.machine.batch_transfer import read_batches
from strop.training.machine.forward import Forward
from strop.training.machine.masked_views import reading_of
from strop.training.machine.shards import ShardedModel
from strop.training.machine.step_totals import noting
from strop.training.machine.tokenizers import copy_tokenizer
from strop.training.trainers.torch import TorchTrainer
from strop.workers.frames import Frame, Frames
from strop.workers.pickled_parts import unpacked


class Rank:
    """Every method is called on all ranks at once, because all of them take part in collective operations."""

    def __init__(self, settings: TorchTrainer, rank: int, ranks: int) -> None:
        self.settings = settings
        self.rank = rank
        self.device = f"cuda:{rank}" if settings.device == "cuda" else settings.device
        self.mesh = init_device_mesh(settings.device, (ranks,))
        self.forward = Forward(self.device, settings.dtype, settings.chunk)
        self.reference: ShardedModel | None = None

    def open(self, model: str, seed: int) -> dict[str, Any]:
        self.source, self.seed = Path(model), seed
        self.forward.reading = reading_of(self.settings.view, self.source, seed)
        if self.settings.store is not None:
            self.forward.pictures = self.settings.store.reader(self.source)
        self._load(self.source)
        return {}

    def annotate(self, batches: str, policies: list[str], into: str) -> dict[str, Any]:
        if "reference" in policies and self.reference is None:
            folder = self.source if self.settings.reference is None else Path(self.settings.reference)
            self.reference = self._sharded(folder)
        models = {"reference": self.reference, "proximal": self.policy}
        found = {
            f"{index}.{name}": self._logprobs(model, batch)
            for index, batch in enumerate(read_batches(Path(batches)))
            for name, model in models.items()
            if name in policies and model is not None
        }
        save_file(found, into)
        return {}

    def step(self, batches: str, objective: Objective, learning_rate: float) -> dict[str, Any]:
        """One optimizer step on this rank's part of every batch, unless some number is not finite anywhere."""
        parts = read_batches(Path(batches))
        self.settings.learning_rate = learning_rate
        self.policy.zero_grad()
        metrics: defaultdict[str, float] = defaultdict(float)
        log_weights: list[Tensor] = []  # [A] of each part
        watched = objective if self.settings.step_scale is None else noting(objective, log_weights)
        losses = torch.stack([self._backward(part, watched, metrics) for part in parts])
        dist.all_reduce(losses)  # every rank knows the loss of each batch, so all of them decide alike
        norm = float(self.policy.gradient_norm())
        answer: dict[str, Any] = {"losses": losses.tolist(), "norm": norm, "step": self.optimizer.num_steps + 1}
        if not math.isfinite(float(losses.sum()) + norm):
            return answer | {"guilty": self._guilty(parts, losses.tolist(), objective)}
        learning_rate = self.settings.learning_rate_of(self.optimizer.num_steps)
        if self.settings.step_scale is not None:
            answer["step_scale"] = self.settings.step_scale(self._of_all(log_weights))
            learning_rate *= answer["step_scale"]
        self.optimizer.step(learning_rate, norm)
        return answer | {"metrics": metrics, "learning_rate": learning_rate}

    def weights(self, into: str) -> dict[str, Any]:
        found = self.policy.weights()
        if self.rank == 0:
            save_file({name: tensor.cpu().contiguous() for name, tensor in found.items()}, into)
        return {}

    def save(self, folder: str) -> dict[str, Any]:
        """The same files that a trainer of one rank writes."""
        weights, moments = self.policy.weights(), self.policy.joined(self.optimizer.moments())
        if self.rank == 0:
            model = self.policy.model
            if self.forward.reading is not None:
                set_mask_token(model, self.forward.reading.mask, self.forward.reading.places)
            model.save_pretrained(folder, state_dict=_state(model, weights))
            copy_tokenizer(self.source, Path(folder))
            write_state(Path(folder), "trainer", moments, {**self.optimizer.counts, "seed": self.seed})
        return {}

    def resume(self, folder: str) -> dict[str, Any]:
        try:
            self._load(Path(folder))
        except (OSError, ValueError, RuntimeError, ModelError) as error:
            raise CheckpointError(f"cannot read the model in {folder}: {error}") from error
        moments, num_steps = read_state(Path(folder), "trainer", self.policy.shapes)
        self.optimizer.restore(self.policy.cut(moments), num_steps)
        return {}

    def _load(self, folder: Path) -> None:
        settings = self.settings
        self.policy = self._sharded(folder, is_trained=True)
        self.optimizer = Optimizer(self.policy.local, settings.betas, settings.weight_decay, settings.clip_norm)

    def _sharded(self, folder: Path, is_trained: bool = False) -> ShardedModel:
        model = load_model(folder, device=self.device)
        if not is_trained or self.settings.tower == "trained":
            model.requires_grad_(is_trained)
        return ShardedModel(model, self.mesh)

    def _logprobs(self, model: ShardedModel, batch: Batch) -> Tensor:
        with torch.no_grad():
            found: Tensor = model(self.forward.logprobs, batch)
        return found

    def _backward(self, batch: Batch, objective: Objective, metrics: defaultdict[str, float]) -> Tensor:
        """Add this batch's gradient and metric_sums to the step's; a batch without a token to train adds nothing."""
        metric_sums: Mapping[str, float] = {}
        if bool(batch.trainable.any()):
            loss, metric_sums = self.policy(self.forward.loss, batch, objective)
        else:
            loss = self.policy(self.forward.nothing, batch)
        loss.backward()
        for name, value in metric_sums.items():
            metrics[name] += float(value)  # a tensor still, on a GPU
        detached: Tensor = loss.detach()
        return detached

    def _of_all(self, own: list[Tensor]) -> Tensor:
        """The numbers of all ranks, one rank after the other."""
        numbers = torch.cat([torch.zeros(0, device=self.device), *own])
        counts = torch.zeros(self.mesh.size(), dtype=torch.int64, device=self.device)
        counts[self.rank] = len(numbers)
        dist.all_reduce(counts)
        found = numbers.new_zeros(int(counts.sum()))
        found[int(counts[: self.rank].sum()) :][: len(numbers)] = numbers
        dist.all_reduce(found)
        return found

    def _guilty(self, batches: list[Batch], losses: list[float], objective: Objective) -> list[int]:
        """Indices of the batches behind a number that is not finite."""
        guilty = [index for index, loss in enumerate(losses) if not math.isfinite(loss)]
        for index, batch in enumerate(batches if not guilty else ()):
            self.policy.zero_grad()
            self._backward(batch, objective, defaultdict(float))
            if not math.isfinite(float(self.policy.gradient_norm())):
                guilty.append(index)
        self.policy.zero_grad()
        return guilty


def _state(model: Any, weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Whole weights under every name they go by, and whatever else a model stores."""
    tied = {id(parameter): name for name, parameter in model.named_parameters()}
    named = dict(model.named_parameters(remove_duplicate=False))
    return {
        name: weights[tied[id(named[name])]] if name in named else tensor for name, tensor in model.state_dict().items()
    }


def serve(frames: Frames) -> None:
    """Join the others, then follow orders."""
    setup = frames.take()
    rank = _joined(unpacked(setup.arrays["settings"]), **setup.head)
    while True:
        order = frames.take()
        frames.answer(order, {"at": time.monotonic()} | _followed(rank, order))


def _joined(trainer: TorchTrainer, rank: int, ranks: int, scratch: str, seconds: float) -> Rank:
    torch_setup.set_up(1, is_deterministic=True)
    if trainer.device == "cuda":
        torch.cuda.set_device(rank)
    dist.init_process_group(
        "nccl" if trainer.device == "cuda" else "gloo",
        init_method=f"file://{scratch}/store",
        rank=rank,
        world_size=ranks,
        timeout=timedelta(seconds=seconds),
    )
    return Rank(trainer, rank, ranks)


def _followed(rank: Rank, order: Frame) -> dict[str, Any]:
    """The answer to an order; an error is one too."""
    parts = {name: unpacked(array) for name, array in order.arrays.items()}
    try:
        answer: dict[str, Any] = getattr(rank, order.head["verb"])(**order.head["order"], **parts)
        return answer
    except StropError as error:
        return {"error": str(error), "kind": type(error).__name__}
    except Exception as error:
        traceback.print_exc()
        return {"error": f"{type(error).__name__}: {error}", "kind": ""}
