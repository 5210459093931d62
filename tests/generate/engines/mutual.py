"""What a model that fills masks predicts, by transformers alone: eager attention with a mask that hides nothing."""

from __future__ import annotations

from typing import Any

import torch

from strop.types import IntArray


@torch.no_grad()
def mutual_logprobs(model: Any, tokens: IntArray, temperature: float = 1.0) -> torch.Tensor:
    """Log-probabilities [L, V] at each place of one canvas."""
    size = len(tokens)
    nothing_hidden = torch.zeros(1, 1, size, size)
    given = {"input_ids": torch.as_tensor(tokens).unsqueeze(0), "attention_mask": nothing_hidden}
    scores = model(**given, use_cache=False).logits[0].float()
    return torch.log_softmax(scores / temperature, -1)
