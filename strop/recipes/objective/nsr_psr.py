"""PSR, NSR and W-REINFORCE: separately weighted reinforcement of right and of wrong rollouts; no baseline.

Title: The Surprising Effectiveness of Negative Reinforcement in LLM Reasoning
Paper: arXiv 2506.01347 (2025)
Claim: Learning from wrong rollouts alone keeps or raises pass@k up to k = 256, often to PPO's and GRPO's level.
Reading: `sides=both` is W-REINFORCE, with a weight of 0.1 on right rollouts; `negative` is NSR, `positive` is PSR.
Acts: advantage_mean != 0
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from strop.errors import ConfigurationError, nearest
from strop.recipes.setting import Setting
from strop.roles import Advantage, Gate
from strop.run import Run
from strop.success import ROUNDING
from strop.training.losses.clip import Clip
from strop.types import GateResult, Group

_REWARD = {"right": 1.0, "wrong": 0.0}


@dataclass(frozen=True)
class OneSided(Gate):
    """Gate that keeps the rollouts of total reward 1 (`right`) or 0 (`wrong`); groups without any are dropped."""

    side: str  # right or wrong: the rollouts to keep

    def __post_init__(self) -> None:
        if self.side not in _REWARD:
            raise ConfigurationError(f"OneSided needs side right or wrong, got {self.side!r}")

    def __call__(self, group: Group) -> GateResult:
        kept = [rollout for rollout in group.scored if abs(rollout.reward - _REWARD[self.side]) <= ROUNDING]
        if not kept:
            return GateResult(None, f"no rollout is {self.side}")
        return GateResult(replace(group, rollouts=kept), f"kept {len(kept)} of {len(group.rollouts)} rollouts")


# PSR and NSR (2506.01347) drop one side with the gate `OneSided`, before any average is taken: with a zero weight its
# rollouts would stay in the loss's denominator.


@dataclass(frozen=True)
class Signed(Advantage):
    """A = positive where the reward is 1, -negative where it is 0, and 0 for rewards in between.

    The defaults are the paper's W-REINFORCE.
    """

    positive: float = 0.1  # advantage of a right rollout
    negative: float = 1.0  # minus the advantage of a wrong rollout

    def __call__(self, groups: Sequence[Group]) -> None:
        for group in groups:
            for rollout in group.scored:
                rollout.set_advantage(self._advantage(rollout.reward))

    def _advantage(self, reward: float) -> float:
        if abs(reward - 1.0) <= ROUNDING:
            return self.positive
        return -self.negative if abs(reward) <= ROUNDING else 0.0


_SIDES = {"both": (), "negative": (OneSided("wrong"),), "positive": (OneSided("right"),)}


def nsr_psr(
    setting: Setting = Setting(),
    sides: str = "both",  # both (W-REINFORCE), negative (NSR) or positive (PSR)
    positive: float = 0.1,  # weight of right rollouts; wrong ones have weight 1
    clip: float = 0.2,  # PPO clip range: ratios are clipped to [1 - clip, 1 + clip]
) -> Run:
    """Clipped policy gradient with W-REINFORCE, NSR or PSR advantages."""
    if sides not in _SIDES:
        raise ConfigurationError(f"nsr_psr has no sides {sides!r}: {nearest(sides, _SIDES)}")
    signed = Signed(positive=positive) if sides == "both" else Signed(positive=1.0)
    return setting.run("nsr_psr", signed, (Clip(clip, clip),), gates=_SIDES[sides])
