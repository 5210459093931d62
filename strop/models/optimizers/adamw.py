"""AdamW (Loshchilov and Hutter, 1711.05101) that refuses non-finite gradients and resumes to the same bits."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from strop.errors import CheckpointError, NumericsError

_MOMENTS = ("exp_avg", "exp_avg_sq", "step")  # as torch.optim.AdamW names them


class Optimizer:
    """AdamW with gradient clipping; states go by parameter name, so a checkpoint does not depend on their order."""

    def __init__(
        self, parameters: Mapping[str, Tensor], betas: tuple[float, float], weight_decay: float, clip_norm: float | None
    ) -> None:
        self.parameters = dict(parameters)
        self.clip_norm = clip_norm
        self.num_steps = 0
        self._adamw = torch.optim.AdamW(
            list(self.parameters.values()), betas=betas, weight_decay=weight_decay, fused=True
        )

    def zero_grad(self) -> None:
        self._adamw.zero_grad(set_to_none=True)

    def divide(self, by: float) -> None:
        """Make a sum of gradients their mean."""
        torch._foreach_div_(self._gradients(), by)

    def gradient_norm(self) -> Tensor:
        return torch.nn.utils.get_total_norm(self._gradients())

    def step(self, learning_rate: float, gradient_norm: float) -> None:
        """Move the parameters along their gradients; `gradient_norm` is that of all of them together."""
        if not math.isfinite(gradient_norm):
            raise NumericsError(f"gradient norm {gradient_norm}: the weights were not touched")
        if self.clip_norm is not None and gradient_norm > self.clip_norm:
            torch.nn.utils.clip_grads_with_norm_(self.parameters.values(), self.clip_norm, torch.tensor(gradient_norm))
        self._adamw.param_groups[0]["lr"] = learning_rate
        self._adamw.step()
        # the fused kernel does not say that it has written, and copies made of the weights must know
        torch.autograd.graph.increment_version(list(self.parameters.values()))
        self.num_steps += 1

    def descend(self, losses: Iterable[Tensor], learning_rate: float, told: str) -> float:
        """One step on the sum of losses, each computed when its turn comes; returns the gradient's norm.

        Where that is no number nothing moves, and the error says what was `told`.
        """
        self.zero_grad()
        total = 0.0
        for loss in losses:
            torch.autograd.backward(loss)
            total += float(loss.detach())
        norm = float(self.gradient_norm())
        if not math.isfinite(total + norm):
            self.zero_grad()
            raise NumericsError(f"{told}: loss {total}, gradient norm {norm}; its weights were not touched")
        self.step(learning_rate, norm)
        return norm

    def step_unless_broken(self, learning_rate: float, gradient_norm: Tensor, losses: Tensor) -> None:
        """The same on a GPU without waiting for it: nothing moves if the norm or a loss is not finite.

        The kernel divides gradients by a scale, which is how they are clipped, and heeds a flag.
        """
        limit = float("inf") if self.clip_norm is None else self.clip_norm
        self._adamw.grad_scale = (gradient_norm / (limit + 1e-6)).clamp(min=1.0)  # type: ignore[attr-defined]
        broken = ~(gradient_norm.isfinite() & losses.isfinite().all())
        self._adamw.found_inf = broken.to(torch.float32)  # type: ignore[attr-defined]
        self._adamw.param_groups[0]["lr"] = learning_rate
        self._adamw.step()
        torch.autograd.graph.increment_version(list(self.parameters.values()))
        self.num_steps += 1

    def save(self, folder: Path, name: str, facts: Mapping[str, int]) -> None:
        """Write moments as `name`.safetensors and the rest as `name`.json."""
        write_state(folder, name, self.moments(), {**self.counts, **facts})

    def save_whole(self, folder: Path, name: str) -> None:
        """With the parameters, as NAME_weights.safetensors."""
        weights = {key: tensor.detach().cpu().contiguous() for key, tensor in self.parameters.items()}
        save_file(weights, folder / f"{name}_weights.safetensors")
        self.save(folder, name, {})

    def resume(self, folder: Path, name: str) -> None:
        """Read what `save` wrote."""
        shapes = {parameter: tensor.shape for parameter, tensor in self.parameters.items()}
        self.restore(*read_state(folder, name, shapes))

    @property
    def counts(self) -> dict[str, int]:
        return {"num_steps": self.num_steps, "num_parameters": len(self.parameters)}

    def moments(self) -> dict[str, Tensor]:
        """By parameter/moment; none of a parameter that never had a gradient."""
        return {
            f"{parameter}/{moment}": state[moment].detach()
            for parameter, tensor in self.parameters.items()
            if (state := self._adamw.state.get(tensor))
            for moment in _MOMENTS
        }

    def restore(self, moments: Mapping[str, Tensor], num_steps: int) -> None:
        state = {
            index: {moment: moments[f"{parameter}/{moment}"] for moment in _MOMENTS}
            for index, parameter in enumerate(self.parameters)
            if f"{parameter}/step" in moments
        }
        self._adamw.load_state_dict({"state": state, "param_groups": self._adamw.state_dict()["param_groups"]})
        self.num_steps = num_steps

    def _gradients(self) -> list[Tensor]:
        return [tensor.grad for tensor in self.parameters.values() if tensor.grad is not None]


def write_state(folder: Path, name: str, moments: Mapping[str, Tensor], facts: Mapping[str, int]) -> None:
    save_file({key: tensor.cpu().contiguous() for key, tensor in moments.items()}, folder / f"{name}.safetensors")
    (folder / f"{name}.json").write_text(json.dumps({**facts, "num_moments": len(moments)}, indent=1) + "\n")


def read_state(folder: Path, name: str, shapes: Mapping[str, torch.Size]) -> tuple[dict[str, Tensor], int]:
    """Moments and the number of steps, of a model whose parameters have these shapes."""
    try:
        moments = load_file(folder / f"{name}.safetensors")
    except (OSError, SafetensorError) as error:
        raise CheckpointError(f"cannot read the optimizer state {folder / name}.*: {error}") from error
    counts = read_counts(folder, name)
    num_steps, saved = counts["num_steps"], (counts["num_parameters"], counts["num_moments"])
    if saved != (found := (len(shapes), len(moments))) or not _fit(moments, shapes):
        raise CheckpointError(
            f"the optimizer state {folder / name}.* is not of this model: saved {saved[1]} moments of {saved[0]} "
            f"parameters, found {found[1]} of {found[0]}"
        )
    return moments, num_steps


def read_counts(folder: Path, name: str) -> dict[str, int]:
    """What stands beside saved moments."""
    try:
        counts = json.loads((folder / f"{name}.json").read_text())
        needed = {key: int(counts[key]) for key in ("num_steps", "num_parameters", "num_moments")}
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise CheckpointError(f"cannot read the optimizer state {folder / name}.*: {error}") from error
    return {**counts, **needed}


def _fit(moments: Mapping[str, Tensor], shapes: Mapping[str, torch.Size]) -> bool:
    """Whether every moment belongs to a parameter of its shape."""
    expected = {f"{parameter}/{moment}": shape for parameter, shape in shapes.items() for moment in _MOMENTS[:2]}
    expected |= {f"{parameter}/step": torch.Size() for parameter in shapes}
    return all(expected.get(name) == tensor.shape for name, tensor in moments.items())
