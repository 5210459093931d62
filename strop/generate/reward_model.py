"""Reward model trained by a run: a language model whose verdict tokens score completions in batches."""

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
    """score = logit(good) - logit(bad) after task, completion and question; higher is better.

    The folder's files are hashed into origin.json like those of any model that a run loads.
    """

    model: FilePath  # folder
    device: str = "cpu"
    weights: str = ""  # expected fingerprint of its weights; empty: any

    _opened: tuple[Any, Template, IntArray] | None = field(default=None, init=False, repr=False, compare=False)

    def problems(self, run: Run) -> list[str]:
        if Path(self.model).is_dir():
            return []
        return [f"the reward model's folder {self.model} does not exist: name RUN/checkpoints/step-N of a run"]

    def read(self) -> None:
        """Load the model if it is not loaded yet."""
        if self._opened is not None:
            return
        folder = Path(self.model)
        template, model = Template.load(folder), load_model(folder, device=self.device)
        found = fingerprint(parameters(model))
        if self.weights and found != self.weights:
            raise ConfigurationError(f"the weights in {folder} have fingerprint {found}, expected {self.weights}")
        self._opened = model, template, word_ids(template)

    @property
    def fingerprint(self) -> str:
        """Fingerprint of the loaded weights."""
        return fingerprint(parameters(self._ready()[0]))

    def scores(self, asked: Sequence[tuple[Sequence[Message], str]]) -> list[float]:
        """Scores of completions, given as pairs (prompt, completion); NaN where one exceeds the context."""
        model, _, words = self._ready()
        with torch.no_grad():
            states = torch.from_numpy(self.states(asked)).to(self.device, model.get_output_embeddings().weight.dtype)
            both = logits(model, states)[:, torch.from_numpy(words).to(self.device)].double()  # [N, 2]
        return [float(score) for score in both[:, 0] - both[:, 1]]

    def states(self, asked: Sequence[tuple[Sequence[Message], str]]) -> NDArray[np.float64]:
        """Last hidden states before each verdict: [N, H]; NaN where a completion exceeds the context."""
        model, template, _ = self._ready()
        prompts = [before_verdict(template, messages, _plain(template, completion)) for messages, completion in asked]
        fitting = np.array([len(prompt) < context_length(model) for prompt in prompts], dtype=bool)
        found = np.full((len(prompts), model.config.get_text_config().hidden_size), np.nan)
        kept = [prompt for prompt, fits in zip(prompts, fitting, strict=True) if fits]
        for part in passes(kept, _PASS):
            with torch.no_grad():
                states = last_states(model, kept[part], self.device)
            found[np.flatnonzero(fitting)[part]] = states.double().cpu().numpy()
        return found

    @property
    def direction(self) -> NDArray[np.float64]:
        """Direction of the score in hidden states: output row of good minus output row of bad: [H]."""
        model, _, words = self._ready()
        rows = model.get_output_embeddings().weight.detach()[torch.from_numpy(words).to(self.device)].double()
        return np.asarray((rows[0] - rows[1]).cpu().numpy())

    def _ready(self) -> tuple[Any, Template, IntArray]:
        self.read()
        assert self._opened is not None
        return self._opened


def _plain(template: Template, text: str) -> str:
    """Text without the tokens that delimit messages: a completion cannot imitate a question or a verdict."""
    added = template.tokenizer.added_tokens_decoder.values()
    scores = {*template.tokenizer.all_special_tokens, *(token.content for token in added if token.special)}
    special = re.compile("|".join(map(re.escape, sorted(scores))))
    while scores and special.search(text):
        text = special.sub("", text)  # again: removal may join two parts to a new one
    return text
