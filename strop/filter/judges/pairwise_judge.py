"""Pairwise judges: a generative judge with a one-token verdict, or the environment's own check."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from strop.environments.data.table import Table
from strop.errors import ConfigurationError
from strop.roles import Environment
from strop.text.sanitize import set_in
from strop.types import FilePath, Task
from strop.workers.foreign_checks import checked

if TYPE_CHECKING:
    from strop.run import Run


@dataclass(frozen=True)
class Graded:
    """Bradley-Terry judge from the environments' own checks: s(scale * (check of first - check of second) + bias).

    It stands in for a trained judge; `bias` is a position bias towards the first completion, as real judges have.
    """

    envs: tuple[Environment, ...]
    scale: float = 4.0
    bias: float = 0.0

    def problems(self, run: Run) -> list[str]:
        """Errors: environments that cannot check a completion."""
        blind = [env.name for env in self.envs if isinstance(env, Table) and not env.is_answered]
        return [f"{name} has no answers to compare completions by: name judge=FOLDER" for name in blind]

    def open_resources(self) -> None:
        """Make one task of each environment, so that what it imports and reads is on no rollout's clock."""
        for env in self.envs:
            env.task(0)

    def first_wins(self, task: Task, first: str, second: str) -> float:
        env = next((env for env in self.envs if env.name == task.source), None)
        if env is None:
            raise ConfigurationError(f"Graded knows no environment {task.source!r}, only {[w.name for w in self.envs]}")
        score = self.scale * (checked(env, task, first) - checked(env, task, second)) + self.bias
        return 1 / (1 + math.exp(-score))


@dataclass
class Generative:
    """Language model that reads the task and both completions, and names the better one by its next token.

    The probability is normalized over the two verdict tokens. Each part of the prompt starts a line, and no line of a
    completion can be mistaken for one.
    """

    model: FilePath  # folder
    verdicts: tuple[str, str] = ("1", "2")
    question: str = "{task}\n1: {first}\n2: {second}\nbetter: "

    _opened: Any = field(default=None, init=False, repr=False, compare=False)

    def open_resources(self) -> None:
        """Load the model now, on no rollout's clock."""
        self._ready()

    def first_wins(self, task: Task, first: str, second: str) -> float:
        import torch

        model, control, ids = self._ready()
        text = self.asked(task, first, second, control.twins.cover)
        with torch.no_grad():
            tokens = torch.tensor([control.encode(text)])
            scores = model(input_ids=tokens).logits[0, -1, ids].float()
        return float(scores.softmax(-1)[0])

    def asked(self, task: Task, first: str, second: str, cover: Callable[[str], str] = str) -> str:
        """What it reads; of control tokens, those of the question alone."""
        told = "\n".join(message.content for message in task.messages)
        task_, one, other = (cover(set_in(text)) for text in (told, first, second))
        return self.question.format(task=task_, first=one, second=other)

    def _ready(self) -> Any:
        if self._opened is None:
            from transformers import AutoTokenizer

            from strop.models.loading.load_weights import read_model
            from strop.models.tokens.control_tokens import ControlTokens

            control = ControlTokens.of(AutoTokenizer.from_pretrained(Path(self.model), local_files_only=True))
            ids = [control.encode_content(verdict) for verdict in self.verdicts]
            if any(len(each) != 1 for each in ids):
                raise ConfigurationError(f"each verdict must be one token of {self.model}, got {ids}")
            model = read_model(Path(self.model)).eval()
            self._opened = (model, control, [each[0] for each in ids])
        return self._opened
