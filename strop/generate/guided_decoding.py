"""What an engine that decodes under a value model asks: what becomes of the next token's logits?"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Protocol

if TYPE_CHECKING:
    from torch import Tensor


class Guidance(Protocol):
    """How does a value move the next token's distribution? `base` are the model's logits [V]; of its `candidates` [C],
    the likeliest tokens, the value model has `told` [C] something. Answers with logits [V].
    """

    file: ClassVar[str]  # in the folder of saved values: of the value model whose metrics it understands

    def __call__(self, base: Tensor, candidates: Tensor, told: Tensor) -> Tensor: ...
