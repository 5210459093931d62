"""A reward model that a run has made: a model folder that is asked for verdicts, many in one pass."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray

from strop.errors import ConfigurationError
from strop.generate.templates.chat_template import Template
from strop.generate.verdict_tokens import before_verdict, word_ids
from strop.models.layers.prompt_states import last_states, passes
from strop.models.model import context_length, load_model, logits, parameters
from strop.types import FilePath, IntArray, Message
from strop.weights.fingerprint import fingerprint

if TYPE_CHECKING:
    from strop.run import Run

_PASS = 8192  # tokens


@dataclass
class RewardModel:
    """score = logit(good) - logit(bad) behind the task, the completion and the question; higher is better.

    Files of the folder are hashed into origin.json as those of any model that a run reads.
    """

    model: FilePath  # folder
    device: str = "cpu"
    weights: str = ""  # the fingerprint that its weights must have; empty: any

    _opened: tuple[Any, Template, IntArray] | None = field(default=None, init=False, repr=False, compare=False)

    def problems(self, run: Run) -> list[str]:
        if Path(self.model).is_dir():
            return []
        return [f"the reward model's folder {self.model} does not exist: name RUN/checkpoints/step-N of a run"]

    def read(self) -> None:
        """Load it; what is there already stays."""
        if self._opened is not None:
            return
        folder = Path(self.model)
        template, model = Template.load(folder), load_model(folder, device=self.device)
        found = fingerprint(parameters(model))
        if self.weights and found != self.weights:
            raise ConfigurationError(f"the weights in {folder} have the fingerprint {found}, need {self.weights}")
        self._opened = model, template, word_ids(template)

    @property
    def fingerprint(self) -> str:
        """Of the weights that it answers with."""
        return fingerprint(parameters(self._ready()[0]))

    def scores(self, asked: Sequence[tuple[Sequence[Message], str]]) -> list[float]:
        """Of completions to tasks; what does not fit its context has none (NaN)."""
        model, _, words = self._ready()
        with torch.no_grad():
            states = torch.from_numpy(self.states(asked)).to(self.device, model.get_output_embeddings().weight.dtype)
            both = logits(model, states)[:, torch.from_numpy(words).to(self.device)].double()  # [N, 2]
        return [float(score) for score in both[:, 0] - both[:, 1]]

    def states(self, asked: Sequence[tuple[Sequence[Message], str]]) -> NDArray[np.float64]:
        """The state before each verdict: [N, H]; NaN for what does not fit its context."""
        model, template, _ = self._ready()
        prompts = [before_verdict(template, messages, _plain(template, completion)) for messages, completion in asked]
        fitting = np.array([len(prompt) < context_length(model) for prompt in prompts], dtype=bool)
        found = np.full((len(prompts), model.config.hidden_size), np.nan)
        kept = [prompt for prompt, fits in zip(prompts, fitting, strict=True) if fits]
        for part in passes(kept, _PASS):
            with torch.no_grad():
                states = last_states(model, kept[part], self.device)
            found[np.flatnonzero(fitting)[part]] = states.double().cpu().numpy()
        return found

    @property
    def direction(self) -> NDArray[np.float64]:
        """Along which states score: the row of good in the output layer less that of bad: [H]."""
        model, _, words = self._ready()
        rows = model.get_output_embeddings().weight.detach()[torch.from_numpy(words).to(self.device)].double()
        return np.asarray((rows[0] - rows[1]).cpu().numpy())

    def _ready(self) -> tuple[Any, Template, IntArray]:
        self.read()
        assert self._opened is not None
        return self._opened


def _plain(template: Template, text: str) -> str:
    """Without the tokens that open and close messages: a completion cannot pass for a question or a verdict."""
    added = template.tokenizer.added_tokens_decoder.values()
    scores = {*template.tokenizer.all_special_tokens, *(token.content for token in added if token.special)}
    special = re.compile("|".join(map(re.escape, sorted(scores))))
    while scores and special.search(text):
        text = special.sub("", text)  # again: what is left may join to another one
    return text
