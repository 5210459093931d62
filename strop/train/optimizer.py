"""AdamW (Loshchilov and Hutter, 1711.05101) that refuses a gradient that is not finite and resumes to the same bits."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from strop.errors import CheckpointError, NumericsError

_MOMENTS = ("exp_avg", "exp_avg_sq", "step")  # as torch.optim.AdamW names them


class Optimizer:
    """Clips, steps and remembers; parameters are known by name, so a checkpoint does not depend on their order."""

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

    def gradient_norm(self) -> Tensor:
        return torch.nn.utils.get_total_norm(self._gradients())

    def step(self, learning_rate: float, gradient_norm: float) -> None:
        """Move the parameters along their gradients; `gradient_norm` is that of all of them together."""
        if not math.isfinite(gradient_norm):
            raise NumericsError(f"gradient norm {gradient_norm}: the weights were not touched")
        if self.clip_norm is not None and gradient_norm > self.clip_norm:
            torch._foreach_mul_(self._gradients(), self.clip_norm / gradient_norm)
        self._adamw.param_groups[0]["lr"] = learning_rate
        self._adamw.step()
        self.num_steps += 1

    def save(self, folder: Path, name: str, facts: Mapping[str, int | str]) -> None:
        """Write moments as `name`.safetensors and the rest as `name`.json."""
        moments = {
            f"{parameter}/{moment}": state[moment].detach().cpu().contiguous()
            for parameter, tensor in self.parameters.items()
            if (state := self._adamw.state.get(tensor))
            for moment in _MOMENTS
        }
        save_file(moments, folder / f"{name}.safetensors")
        (folder / f"{name}.json").write_text(json.dumps({"num_steps": self.num_steps, **facts}, indent=1) + "\n")

    def resume(self, folder: Path, name: str) -> None:
        """Read what `save` wrote."""
        try:
            moments = load_file(folder / f"{name}.safetensors")
            self.num_steps = int(json.loads((folder / f"{name}.json").read_text())["num_steps"])
        except (OSError, SafetensorError, ValueError, KeyError) as error:
            raise CheckpointError(f"cannot read the optimizer state {folder / name}.*: {error}") from error
        self._check(moments, folder / f"{name}.safetensors")
        state = {
            index: {moment: moments[f"{parameter}/{moment}"] for moment in _MOMENTS}
            for index, parameter in enumerate(self.parameters)
            if f"{parameter}/step" in moments
        }
        self._adamw.load_state_dict({"state": state, "param_groups": self._adamw.state_dict()["param_groups"]})

    def _gradients(self) -> list[Tensor]:
        return [tensor.grad for tensor in self.parameters.values() if tensor.grad is not None]

    def _check(self, moments: Mapping[str, Tensor], path: Path) -> None:
        """A file of another model, or one without all moments, is refused before anything is changed."""
        shapes = {f"{parameter}/exp_avg": tensor.shape for parameter, tensor in self.parameters.items()}
        known = {f"{parameter}/{moment}" for parameter in self.parameters for moment in _MOMENTS}
        strange = sorted(set(moments) - known)
        if strange or len(moments) % len(_MOMENTS) or (self.num_steps > 0) != bool(moments):
            raise CheckpointError(
                f"{path} has {len(moments)} moments for {len(self.parameters)} parameters after {self.num_steps} steps"
                + (f"; {len(strange)} belong to no parameter, first {strange[0]}" if strange else "")
            )
        for name, shape in shapes.items():
            if name in moments and moments[name].shape != shape:
                raise CheckpointError(f"{path}: {name} has shape {tuple(moments[name].shape)}, need {tuple(shape)}")
