"""Dialogue games under a referee, one of them with a partner; measured on new instances and on a whole new game.

Title: Playpen: An Environment for Exploring Learning Through Conversational Interaction
Paper: arXiv 2504.08590 (2025)
Claim: Imitation and preferences help with instances of known games, GRPO helps with unseen games and instances alike.
Reading: A game's own score is the reward and an aborted game earns 0; learns=grpo, or dpo (the best against the worst
    game of one instance) and sft (won games, in whichever round). A completion that is no move aborts a game; a
    description
    that says its number is a move, and loses it. Games are the bundled ones: guessing a number, and describing one to
    a partner, who is the policy as it stands; his words are in no rollout and nobody is trained on them. A first stage
    shows how games are played, and the sums that a partner is asked, which it would forget otherwise. The game that is
    held out is a store of keys.
Left out: The games of clembench, and games of three or more.
Acts: games_played > 0 and games_quality > 0 and tokens_advised > 0 and reward/outcome > 0
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Literal

import numpy as np

from strop.environments.bundled.arithmetic import Arithmetic
from strop.environments.data.lookup import env_of
from strop.environments.multi_agent.describe_game import Describe
from strop.environments.multi_agent.game_master import Refereed
from strop.filter.gates.best_vs_worst_pair import BestAndWorst
from strop.filter.gates.successes_only import Successes
from strop.generate.llm_clients.policy_itself import Itself
from strop.recipes.environments import parse_envs
from strop.recipes.setting import Setting
from strop.recipes.warmup import shown
from strop.recipes.wrapped_environments import wrap_envs
from strop.roles import Advantage, Environment, Gate, Loss, Reward
from strop.run import Run
from strop.training.advantages.constant import Constant
from strop.training.advantages.group_standard import GroupStandard
from strop.training.losses.clip import Clip
from strop.training.losses.likelihood import Likelihood
from strop.training.losses.pairs.dpo import Dpo
from strop.types import Group, Metrics

# Playpen's metrics (2504.08590): how many games were played to their end, how well, and both in one number.

_NAME = "played"


@dataclass(frozen=True)
class Played(Reward):
    """1 for a game in which every completion was a move, 0 for one that was aborted; beside the reward, without weight.

    score = % played * mean quality of the played / 100, quality from 0 to 100: an aborted game counts in the first
    and not in the second.
    """

    envs: tuple[Environment, ...]
    weight: float = 0.0

    is_inline: ClassVar[bool] = True
    name: ClassVar[str] = _NAME

    def __call__(self, group: Group) -> list[float]:
        found = []
        for rollout in group.rollouts:
            env = env_of(self.envs, rollout.task)
            found.append(float(all(env.answer(turn.message.content) for turn in rollout.turns)))
        return found

    def learn(self, groups: Sequence[Group]) -> Metrics:
        rollouts = [rollout for group in groups for rollout in group.scored]
        played = [rollout for rollout in rollouts if rollout.rewards.get(_NAME)]
        share = len(played) / max(len(rollouts), 1)
        quality = float(np.mean([100 * rollout.reward for rollout in played])) if played else 0.0
        return {"games_played": share, "games_quality": quality, "games_score": share * quality}


_SUMS = {1: 1, 2: 3, 3: 6, 4: 8}  # by digits: the level of such sums
_WON = 0.3  # least reward of a won game: the third and last round of a description earns 1/3


def playpen(
    setting: Setting = Setting(env="guess:2"),
    describe: int = 2,  # digits of numbers that are described to a partner; 0: that game is not played
    learns: Literal["grpo", "dpo", "sft"] = "grpo",  # from all games, from pairs, from won ones
    unseen: str = "keyvalue:2",  # the game that is held out
    warmup: int = 10,  # steps in which games are shown
    clip: float = 0.2,  # PPO clip range: ratios are clipped to [1 - clip, 1 + clip]
) -> Run:
    """GRPO, DPO or imitation on games of the policy."""
    kinds: dict[str, tuple[Advantage, Loss, tuple[Gate, ...]]] = {
        "grpo": (GroupStandard(), Clip(clip, clip), ()),
        "dpo": (Constant(), Dpo(), (BestAndWorst(),)),
        "sft": (Constant(), Likelihood(), (Successes(_WON),)),
    }
    advantage, loss, gates = kinds[learns]
    run = setting.run("playpen", advantage, (loss,), gates=gates, warmup=shown(setting, "playpen", warmup))
    if describe:
        _add(run, Describe(describe, setting.seed, Itself()))
    if describe and run.warmup is not None:
        run.warmup.envs = (*run.warmup.envs, Arithmetic(_SUMS[describe], setting.seed))
    wrap_envs(run, lambda env: (Refereed(env),))
    run.rewards = (*run.rewards, Played(run.envs))
    run.evaluation = replace(run.evaluation, unseen=tuple(map(Refereed, parse_envs(unseen, setting.seed))))
    return run


def _add(run: Run, env: Environment) -> None:
    """Another environment, in warm-ups too."""
    run.envs = (*run.envs, env)
    if run.warmup is not None:
        _add(run.warmup, env)
