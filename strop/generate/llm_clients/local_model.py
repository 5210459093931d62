"""LLM client for a model folder; the model is frozen."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from strop.errors import LLMClientError
from strop.generate.engines.cpu.torch_engine import TorchEngine
from strop.generate.templates.chat_template import Template
from strop.roles import LLMClient
from strop.text.llm_prompt import cut_to
from strop.types import FilePath, Message, Sampling

if TYPE_CHECKING:
    from strop.run import Run

# ways to name an LLM client
CHOICES = "http://HOST:PORT/v1#MODEL, a model folder or run, itself, reference, or FILE.py:FUNCTION"
# environments whose questions have no fences, as a recipe.py imports them; it is read here, and never executed
_JUDGING = re.compile(r"^from strop\.environments\.judging\.(?:first_error|listwise) import ", re.MULTILINE)

_CONTEXT = 4096  # tokens, where a model does not say


@dataclass
class Local(LLMClient):
    """Client that loads the model at the first question; it exchanges text, so the tokenizer may differ from the
    policy's.
    """

    model: FilePath  # model folder
    device: str = "cpu"  # or cuda
    _engine: TorchEngine | None = field(default=None, init=False, repr=False, compare=False)
    _template: Template | None = field(default=None, init=False, repr=False, compare=False)

    @property
    def reads_compact(self) -> bool:
        """Whether it is a checkpoint of a run whose tasks were a judge's questions: it knows them without fences."""
        run = next(iter(Path(self.model).resolve().parents[1:2]), Path())
        with suppress(OSError, UnicodeDecodeError):
            return _JUDGING.search((run / "recipe.py").read_text()) is not None
        return False

    def problems(self, run: Run) -> list[str]:
        if Path(self.model).is_dir():
            return []
        return [f"the model folder {self.model} does not exist: need {CHOICES}"]

    async def ask(self, messages: Sequence[Message], sampling: Sampling, key: int) -> str:
        if self._engine is None or self._template is None:
            self._engine, self._template = TorchEngine(device=self.device), Template.load(Path(self.model))
            self._engine.open(Path(self.model))
        template, (*before, last) = self._template, messages
        room = self._context() - sampling.max_tokens
        fitting = cut_to(last.content, room, lambda text: len(template.opening([*before, replace(last, content=text)])))
        try:
            prompt = template.opening([*before, replace(last, content=fitting)])
            written = await self._engine.sample(prompt, sampling, key)
        except ValueError as error:
            raise LLMClientError(f"the model in {self.model} cannot answer: {error}") from error
        return self._template.text(written.tokens)

    def _context(self) -> int:
        """Tokens that the model was made for."""
        settings = json.loads((Path(self.model) / "config.json").read_text())
        return int(settings.get("max_position_embeddings", _CONTEXT))

    @property
    def num_generated(self) -> int | None:
        return 0 if self._engine is None else self._engine.num_generated
