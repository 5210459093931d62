"""Stop conditions of a completion: the model's end tokens and the request's stop strings."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from strop.errors import ModelError
from strop.types import IntArray

_MARGIN = 4  # tokens decoded beyond the longest stop string: decoders treat the first ones of a text specially


def end_tokens(model: Any) -> IntArray:
    """Every end token that the generation config or the model's config names."""
    configs = (getattr(model, "generation_config", None), model.config, model.config.get_text_config())
    named = [getattr(config, "eos_token_id", None) for config in configs]
    lists = [ids if isinstance(ids, list | tuple) else [ids] for ids in named]
    return np.unique(np.array([i for ids in lists for i in ids if i is not None], dtype=np.int64))


class StopStrings:
    """Search for stop strings in the tail of a completion; the tokenizer is loaded at the first request that has
    any.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._tokenizer: Any = None

    def open(self) -> None:
        """Read the tokenizer, once."""
        if self._tokenizer is None:
            from transformers import AutoTokenizer

            try:
                self._tokenizer = AutoTokenizer.from_pretrained(
                    self._folder, local_files_only=True, trust_remote_code=False
                )
            except (OSError, ValueError) as error:
                raise ModelError(f"stop strings need a tokenizer, and {self._folder} has none that loads") from error

    def is_complete(self, completion: IntArray, stop: tuple[str, ...], begun: int = 0) -> bool:
        """Whether a string stands in the last tokens; asked after every token, so no earlier place can matter.

        The first `begun` tokens were there before: what is complete in them did not end the completion.
        """
        # a token is at least a byte
        first = max(len(completion) - max(len(text.encode()) for text in stop) - _MARGIN, 0)
        text, before = self._text(completion[first:]), self._text(completion[first : max(begun, first)])
        return any(text.count(string) > before.count(string) for string in stop)

    def _text(self, tokens: IntArray) -> str:
        return str(self._tokenizer.decode(tokens.tolist(), skip_special_tokens=False)) if len(tokens) else ""
