"""d1's estimate (2504.12216): every token of a reply hidden at once, and some of the prompt, by chance.

One look says how likely each token is where none of the others is known: a product of marginals, not the chance with
which the reply was drawn. Hiding some of the prompt, other tokens in every epoch, keeps many steps on one draw from
fitting one estimate.
Papers: d1
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from strop.backends import View
from strop.errors import ConfigurationError
from strop.training.canvases import Glance, WrittenCanvas


@dataclass(frozen=True)
class AllHidden(View):
    """The whole canvas behind the prompt is hidden."""

    prompt_share: float = 0.15  # of the prompt's tokens that are hidden as well

    is_random: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not 0 <= self.prompt_share < 1:
            raise ConfigurationError(f"AllHidden needs 0 <= prompt_share < 1, got {self.prompt_share}")

    def __call__(self, canvas: WrittenCanvas) -> list[Glance]:
        is_behind = np.arange(len(canvas.tokens)) >= canvas.start
        return [Glance(is_behind | (canvas.chances() < self.prompt_share), canvas.is_reply)]
