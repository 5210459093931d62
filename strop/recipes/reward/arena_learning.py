"""Arena Learning: SFT, then DPO, on completions of a stronger model that a judge prefers to the policy's.

Title: Arena Learning: Build Data Flywheel for LLMs Post-training via Simulated Chatbot Arena
Paper: arXiv 2407.10627 (2024)
Claim: Battles that a judge decides in place of people rank models as people do, and train them round after round.
Reading: Only notes about the paper were read. A fight is lost if the rival wins in both orders; a split is a tie and
    trains nothing. The data slices are the tasks of two runs in a row: supervised on winners, then DPO on (winner,
    loser). Ratings are Bradley-Terry with one tie added for each rival. The environment's demonstrations stand in for
    the stronger model (`rival=` also takes a folder or an address) and rules for the judge (`judge=http://...#MODEL`).
    The environment's own reward is logged with weight 0.
Left out: The third slice, a reward model of lost fights and PPO against it.
Acts: rating != 1000 and kept_share < 1 and margin != 0 with imitated=1
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from strop.concurrency import together
from strop.errors import ConfigurationError, LLMClientError
from strop.filter.judges.batch_ask import transcript
from strop.filter.judges.pairwise_criteria import ASKED, compared
from strop.generate.agents.demonstrator import Demonstrate
from strop.generate.agents.llm_agent import LLMAgent
from strop.recipes.environment_specs import measured
from strop.recipes.named_parts import named_part, reward_seconds
from strop.recipes.setting import Setting
from strop.roles import Agent, Gate, LLMClient, Loss, Player, Reward, Strategy
from strop.run import Run
from strop.standins.judges.criteria import compared_by_criteria
from strop.training.advantages.constant import Constant
from strop.training.losses.likelihood import Likelihood
from strop.training.losses.preference_pairs import Dpo
from strop.training.reductions.means import SequenceMean
from strop.types import GateResult, Group, Metrics, Origin, Rollout, Start

# Arena Learning's data (2407.10627): only the fights that the policy lost.

_ROUNDING = 1e-9


@dataclass(frozen=True)
class LostFights(Gate):
    """Fights in which the rival beat the policy: both rollouts, winner first, or the winner alone."""

    winner_only: bool = False  # for supervised training

    def __call__(self, group: Group) -> GateResult:
        fights: dict[str, list[Rollout]] = {}
        for rollout in group.scored:
            fights.setdefault(rollout.comparison_group, []).append(rollout)
        lost = [both for each in fights.values() if (both := _lost(each))]
        if not lost:
            return GateResult(None, f"none of {len(fights)} fights was lost")
        kept = [rollout for both in lost for rollout in (both[:1] if self.winner_only else both)]
        return GateResult(replace(group, rollouts=kept), f"lost {len(lost)} of {len(fights)} fights")


def _lost(fight: list[Rollout]) -> list[Rollout]:
    """[rival's rollout, policy's rollout] if the rival won; empty for a win or a tie."""
    rivals = [each for each in fight if each.origin is Origin.TEACHER]
    own = [each for each in fight if each.origin is not Origin.TEACHER]
    if len(rivals) != 1 or len(own) != 1 or rivals[0].reward <= own[0].reward + _ROUNDING:
        return []
    return [*rivals, *own]


# Ratings from fights by maximum likelihood: P(i beats j) = 1 / (1 + 10^((R_j - R_i) / 400)).
#
# One tie is added to each pair of players that met: a player without a loss would have an infinite rating.

_SCALE = 400.0  # rating difference of 10:1 odds
_ROUNDS = 10_000
_ENOUGH = 1e-12


def ratings(wins: NDArray[np.float64], anchor: int = 0, at: float = 1000.0) -> list[float]:
    """Ratings of K players. `wins` [K, K]: how often i beat j, ties count 1/2 for each; the anchor is rated `at`."""
    fought = (wins + wins.T > 0).astype(np.float64)  # [K, K]
    held = wins + fought / 2
    played, won = held + held.T, held.sum(1)
    strength = np.ones(len(wins))
    for _ in range(_ROUNDS):  # Zermelo's iteration, which converges to the unique maximum
        share = (played / (strength[:, None] + strength[None, :])).sum(1)
        after = np.where(share > 0, won / np.maximum(share, 1e-300), strength)
        after /= np.exp(np.log(after).mean())
        is_done = np.abs(after - strength).max() < _ENOUGH
        strength = after
        if is_done:
            break
    return [at + _SCALE * math.log10(each / strength[anchor]) for each in strength.tolist()]


def probability(rating: float, other: float) -> float:
    """Probability that a player of this rating beats the other."""
    return 1 / (1 + 10 ** ((other - rating) / _SCALE))


# Result of a fight (2407.10627): a judge compares both completions in both orders; a split decision is a tie.


@dataclass(frozen=True)
class Fights(Reward):
    """1 for the winner, 0 for the loser, 1/2 each for a tie; comparison groups of other sizes than 2 get no reward."""

    judge: LLMClient  # compares two completions
    weight: float = 1.0
    prompt: str = ASKED  # how a comparison is asked for, below task and both completions

    is_inline: ClassVar[bool] = True  # awaits its judge
    is_relative: ClassVar[bool] = True

    async def __call__(self, group: Group) -> list[float]:
        fights: dict[str, list[Rollout]] = {}
        for rollout in group.rollouts:
            fights.setdefault(rollout.comparison_group, []).append(rollout)
        pairs = [both for both in fights.values() if len(both) == 2]
        found = await asyncio.gather(*(self._share(*both) for both in pairs), return_exceptions=True)
        errors = [each for each in found if isinstance(each, BaseException)]
        other = [each for each in errors if not isinstance(each, LLMClientError)]
        if other or (errors and len(errors) == len(found)):
            raise (other or errors)[0]
        scores = {rollout.id: math.nan for rollout in group.rollouts}
        for (first, second), share in zip(pairs, found, strict=True):
            if not isinstance(share, BaseException):
                scores |= {first.id: share, second.id: 1 - share}
        return [scores[rollout.id] for rollout in group.rollouts]

    async def _share(self, first: Rollout, second: Rollout) -> float:
        one, other = transcript(first), transcript(second)
        return 0.5 if one == other else await compared(first.task, one, other, self.judge, self.prompt)


# Arena Learning's fights (2407.10627): one rollout of a stronger model for each of the policy's, at the same task.
#
# The policy's rating against all rivals is Bradley-Terry; the first rival is rated 1000.

FIGHT = "fight-"  # prefix of a fight's comparison group, before its number
_RIVAL = "rival"  # fact: index of the rival


@dataclass
class Arena(Strategy):
    """Half of the rollouts by the policy, half by the rivals in turn; each fight is a comparison group of two."""

    rivals: tuple[Agent, ...]

    # by rival: fights that the policy won and lost; ties count 1/2 for each
    _won: list[float] = field(default_factory=list, init=False, repr=False, compare=False)
    _lost: list[float] = field(default_factory=list, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not self.rivals:
            raise ConfigurationError("Arena needs at least 1 rival, got 0")
        self._won, self._lost = [0.0] * len(self.rivals), [0.0] * len(self.rivals)

    async def __call__(self, group: Group, starts: Sequence[Start], play: Player) -> list[Rollout]:
        half = len(starts) // 2
        if len(starts) != 2 * half or not half:
            raise ConfigurationError(f"Arena needs an even number of rollouts per group, got {len(starts)}")
        named = [replace(each, comparison_group=f"{FIGHT}{number % half}") for number, each in enumerate(starts)]
        rollouts = await together(
            [*(play(start) for start in named[:half]), *(self._rival(n, s, play) for n, s in enumerate(named[half:]))]
        )
        return [rollout for rollout in rollouts if rollout is not None]

    async def _rival(self, number: int, start: Start, play: Player) -> Rollout | None:
        """The rival's rollout; None if its LLM client failed."""
        index = number % len(self.rivals)
        try:
            rollout = await play(replace(start, origin=Origin.TEACHER), self.rivals[index])
        except LLMClientError:
            return None
        rollout.facts[_RIVAL] = float(index)
        return rollout

    def observe(self, group: Group) -> None:
        for rollout in group.scored:
            if rollout.origin is Origin.TEACHER and _RIVAL in rollout.facts:
                index = int(rollout.facts[_RIVAL])
                self._lost[index] += rollout.reward
                self._won[index] += 1 - rollout.reward

    def learn(self, groups: Sequence[Group]) -> Metrics:
        """Report the policy's rating and its share of lost fights, over all fights so far."""
        wins = np.zeros((len(self.rivals) + 1,) * 2)
        wins[-1, :-1], wins[:-1, -1] = self._won, self._lost
        total = sum(self._won) + sum(self._lost)
        return {"rating": ratings(wins)[-1], "fights_lost": sum(self._lost) / total} if total else {}

    def state(self) -> dict[str, Any]:
        return {"won": self._won, "lost": self._lost}

    def restore(self, state: dict[str, Any]) -> None:
        self._won, self._lost = list(state["won"]), list(state["lost"])


def arena_learning(
    setting: Setting = Setting(),
    rival: str = "demonstrations",  # stronger model: demonstrations (or a named part)
    judge: str = "rules",  # compares two completions (a named part)
    imitated: int = 20,  # steps on the first slice: supervised training on winners
    beta: float = 0.1,  # DPO's beta: scale of the implicit reward log(policy / reference)
) -> Run:
    """`imitated` steps of supervised training come before `steps` of DPO."""

    def stage(sizes: Setting, loss: Loss, winner_only: bool) -> Run:
        gates = (LostFights(winner_only),)
        against: Agent = Demonstrate() if rival == "demonstrations" else LLMAgent(named_part("rival", rival, setting))
        strategy = Arena((against,))
        parts = {"gates": gates, "strategy": strategy, "reduction": SequenceMean()}
        run = sizes.run("arena_learning", Constant(), (loss,), **parts)
        run.rewards = (Fights(named_part("judge", judge, setting, compared_by_criteria)), measured(run.envs))
        run.reward_seconds = reward_seconds(judge)
        return run

    run = stage(setting, Dpo(beta), winner_only=False)
    run.warmup = stage(replace(setting, steps=imitated), Likelihood(), winner_only=True)
    return run
