"""RLGF: PPO with a guide policy that rolls in or out (PPO++, AggreVaTeD, LOLS, D2LOLS).

Title: Learning to Generate Better Than Your LLM
Paper: arXiv 2306.11816 (2023)
Claim: Better than PPO on text generation, and better than the guide, by rolling in or out with it.
Reading: rule is ppo++ (the guide rolls in), aggrevated (it rolls out), lols or d2lols, which mix both. The guide's
    tokens are a state or a return, never trained. Under ppo++ they are the policy's prefix. Under aggrevated the
    policy's first part earns the reward of the whole; the critic learns from the guide's part, too, whose tokens are
    among those over which advantages are whitened. The guide is the initial model, as in the paper, or any other of the
    same vocabulary. Cuts are sampled within `length` tokens before generation.
Left out: KL in the reward; it is a loss here.
Acts: share/branched > 0
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np

from strop.concurrency import together
from strop.errors import ConfigurationError, nearest
from strop.filter.rewards.from_strategy import Noted
from strop.filter.rewards.weighted_sum import as_one
from strop.generate.engines.cpu.torch_engine import TorchEngine
from strop.generate.engines.wrappers.policy_and_reference import WithReference
from strop.generate.rollout_limits import REFERENCE
from strop.generate.turn_ops import as_prefix
from strop.recipes.setting import Setting
from strop.roles import Player, Strategy
from strop.run import Run
from strop.training.advantages.gae import Gae
from strop.training.losses.clip import Clip
from strop.training.losses.kl import Kl
from strop.training.reductions.means import OwnTokenMean
from strop.training.values.critic import Critic
from strop.types import Group, Origin, Outcome, Rollout, Start

# RLGF's rollouts (2306.11816): a guide writes the first part and the policy the rest, or the reverse.
#
# PPO++ rolls in with the guide and out with the policy, AggreVaTeD the reverse. LOLS takes PPO++ in a random share of
# the versions and AggreVaTeD otherwise; D2LOLS takes AggreVaTeD first and PPO++ from a version on. Reading: the cut is
# sampled before generation, uniformly within `length` tokens; a rollout that ends before its cut is a plain one. The
# release generates the roll-in to its end and cuts it then.

Shared: TypeAlias = Callable[[Start, Start, int, Player], Coroutine[Any, Any, list[Rollout]]]
RULES = ("ppo++", "aggrevated", "lols", "d2lols")


@dataclass(frozen=True)
class RolledWithGuide(Strategy):
    """Strategy that shares each rollout with the guide with probability `mixed`; needs the engine `WithReference` and
    its policy name.

    What the policy writes after the guide is BRANCHED. What it writes before is GUIDED: its reward, the fact `noted`,
    is that of the whole rollout; the guide's part is returned as well, as a TEACHER's, for a critic to learn from.
    """

    seed: int  # of the choice between roll-in and roll-out per version
    rule: str = "ppo++"  # aggrevated, lols, d2lols
    mixed: float = 0.8  # probability of a rollout to be shared with the guide
    length: int = 24  # tokens within which a rollout is cut
    share: float = 0.8  # of versions in which the guide rolls in, under lols
    switch: int = 20  # the first version in which the guide rolls in, under d2lols

    def __post_init__(self) -> None:
        if self.rule not in RULES:
            raise ConfigurationError(f"RolledWithGuide knows no rule {self.rule!r}: {nearest(self.rule, RULES)}")
        if not 0 <= self.mixed <= 1 or not 0 <= self.share <= 1 or self.length < 2:
            raise ConfigurationError(
                f"RolledWithGuide needs 0 <= mixed <= 1, 0 <= share <= 1 and length >= 2, got {self.mixed}, "
                f"{self.share} and {self.length}"
            )

    async def __call__(self, group: Group, starts: Sequence[Start], play: Player) -> list[Rollout]:
        others = [play.another() for _ in starts]  # ids must not depend on which one finishes first
        shared = self._guide_begins if self.rolls_in(group.version) else self._guide_ends
        pairs = zip(starts, others, strict=True)
        made = await together(self._rollouts(start, other, shared, play) for start, other in pairs)
        return [rollout for rollouts in made for rollout in rollouts]

    def rolls_in(self, version: int) -> bool:
        """Whether the guide, not the policy, writes the first part in this version."""
        if self.rule == "lols":
            return bool(np.random.default_rng((self.seed, version)).random() < self.share)
        return self.rule == "ppo++" or (self.rule == "d2lols" and version >= self.switch)

    async def _rollouts(self, start: Start, other: Start, shared: Shared, play: Player) -> list[Rollout]:
        rng = np.random.default_rng(start.key)
        if rng.random() >= self.mixed:
            return [await play(start)]
        return await shared(start, other, int(rng.integers(1, self.length)), play)

    async def _guide_begins(self, start: Start, other: Start, cut: int, play: Player) -> list[Rollout]:
        first_part = await play(replace(other, policy_name=REFERENCE, origin=Origin.TEACHER, pause=cut))
        if first_part.outcome is not Outcome.PRUNED:
            return [await play(start)]
        return [
            await play(replace(start, turns=as_prefix(first_part.turns), origin=Origin.BRANCHED, parent=first_part.id))
        ]

    async def _guide_ends(self, start: Start, other: Start, cut: int, play: Player) -> list[Rollout]:
        first_part = await play(replace(start, pause=cut))
        if first_part.outcome is not Outcome.PRUNED:
            return [first_part]
        continued = replace(
            other, policy_name=REFERENCE, origin=Origin.TEACHER, turns=as_prefix(first_part.turns), parent=first_part.id
        )
        rest = await play(continued)
        (scored,) = await play.score([rest])
        if scored is None:
            return [rest]  # the environment failed: the first part has no reward
        whole = replace(first_part, outcome=Outcome.TRUNCATED, origin=Origin.GUIDED, facts={"noted": scored.reward})
        return [whole, rest]


def rlgf(
    setting: Setting = Setting(),
    guide: str = "",  # folder of another model; empty: the initial model
    rule: str = "ppo++",  # aggrevated, lols, d2lols
    mixed: float = 0.8,  # probability of a rollout to be shared with the guide
    length: int = 24,  # tokens within which a rollout is cut
    share: float = 0.8,  # of versions in which the guide rolls in, under lols
    switch: int = 20,  # the first version in which the guide rolls in, under d2lols
) -> Run:
    """Some rollouts are shared with a guide, whose part is not trained."""
    run = setting.run(
        "rlgf",
        Gae(),
        (Clip(0.2, 0.2), Kl(weight=0.001)),
        engine=WithReference(TorchEngine(device=setting.device), TorchEngine(device=setting.device), guide),
        strategy=RolledWithGuide(setting.seed, rule, mixed, length, share, switch),
        reduction=OwnTokenMean(),
        values=Critic(device=setting.device),
        minibatches=2,
    )
    judged = as_one(run.rewards)
    run.rewards = (Noted(judged),)
    return run
