"""CURE's branches (2508.11016): each attempt is written anew from one of the tokens that it was least certain of.

As released: the first token, special tokens and tokens of a single letter are no candidates; of the `candidates` others
of highest entropy one is drawn evenly, and with it all behind it is sampled again. What stands before is given.
Papers: cure
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from strop.concurrency import together
from strop.errors import ConfigurationError
from strop.generate.interfaces import Player
from strop.generate.policy import Policy
from strop.generate.tree_search.branch import branch_of, branched
from strop.roles import Strategy
from strop.training.requirements import ENTROPY
from strop.types import FloatArray, Group, Start, Trajectory


@dataclass
class CriticalTokens(Strategy):
    """Each start is a root; from one critical token of it `branches` attempts go on: M starts, M * (1 + branches)."""

    branches: int = 3  # from the critical token of a root
    candidates: int = 20  # tokens of highest entropy, of which one is drawn
    shortest: int = 2  # letters of a token that may be critical

    _policy: Policy | None = field(default=None, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.branches < 1 or self.candidates < 1 or self.shortest < 0:
            raise ConfigurationError(
                f"CriticalTokens needs branches >= 1, candidates >= 1 and shortest >= 0, got {self.branches}, "
                f"{self.candidates} and {self.shortest}"
            )

    def meet(self, policy: Policy) -> None:
        self._policy = policy

    async def __call__(self, group: Group, starts: Sequence[Start], play: Player) -> list[Trajectory]:
        roots = await together(play(start) for start in starts)
        whole = [(root, start.key) for root, start in zip(roots, starts, strict=True) if root.is_scored]
        written = [(root, key) for root, key in whole if root.num_tokens]
        looks = await play.look([root for root, _ in written], frozenset({ENTROPY})) if written else []
        forks = []
        for (root, key), look in zip(written, looks, strict=True):
            places = self._places(root, look[ENTROPY.name])
            if places:
                at = places[int(np.random.default_rng(key).integers(len(places)))]
                forks += [branch_of(root, at, play.another()) for _ in range(self.branches)]
        return [*roots, *await together(branched(start, play) for start in forks)]

    def _places(self, root: Trajectory, entropy: FloatArray) -> list[int]:
        """Critical tokens, the most uncertain first; of equals the earlier."""
        tokens = [int(token) for turn in root.turns for token in turn.tokens]
        ranked: list[int] = np.argsort(-entropy, kind="stable").tolist()
        return [at for at in ranked if at > 0 and self._may_be_critical(tokens[at])][: self.candidates]

    def _may_be_critical(self, token: int) -> bool:
        if self._policy is None:
            raise ConfigurationError("CriticalTokens does not know what tokens say: call meet(policy) first")
        template = self._policy.template
        is_special = token in template.ends or token in template.tokenizer.all_special_ids
        return not is_special and len(template.decode(np.array([token])).strip()) >= self.shortest
