"""Playpen: GRPO, DPO or SFT on refereed dialogue games, evaluated on new instances and on a held-out game.

Title: Playpen: An Environment for Exploring Learning Through Conversational Interaction
Paper: arXiv 2504.08590 (2025)
Claim: Imitation and preferences help with instances of known games, GRPO helps with unseen games and instances alike.
Reading: A game's own score is the reward and an aborted game earns 0. learns=grpo, or dpo (the best against the worst
    game of one instance), or sft (games won in any round). A completion that is no valid move aborts a game; a
    description that contains its number is a valid move, and loses the game. The games are bundled: guessing a number,
    and describing one to a partner. The partner is the current policy; its completions are in no rollout and are not
    trained on. Supervised steps come first. They show the games, and the sums that the partner is asked, which the
    policy would otherwise forget. The held-out game is a key-value store.
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
from strop.environments.needs import GAME, EnvNeed
from strop.filter.gates.best_vs_worst_pair import BestAndWorst
from strop.filter.gates.successes_only import Successes
from strop.generate.llm_clients.own_models import Itself
from strop.recipes.agent.playpen.environment import Describe, Refereed
from strop.recipes.environment_specs import wrap_envs
from strop.recipes.environments import parse_envs
from strop.recipes.setting import Setting
from strop.recipes.warmup import BundledOnly, shown
from strop.roles import Advantage, Environment, Gate, Loss, Reward
from strop.run import Run
from strop.training.advantages.constant import Constant
from strop.training.advantages.group_relative import GroupStandard
from strop.training.losses.clip import Clip
from strop.training.losses.likelihood import Likelihood
from strop.training.losses.preference_pairs import Dpo
from strop.types import Group, Metrics

# Playpen's metrics (2504.08590): share of completed games, their quality, and the product.

_NAME = "played"


@dataclass(frozen=True)
class Played(Reward):
    """1 for a game in which every completion is a valid move, 0 for an aborted one; a metric, with weight 0.

    score = % played * mean quality of played games / 100, with quality from 0 to 100. Aborted games lower the first
    factor only.
    """

    envs: tuple[Environment, ...]  # the games
    weight: float = 0.0

    env_needs: ClassVar[tuple[EnvNeed, ...]] = (GAME,)

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


_SUMS = {1: 1, 2: 3, 3: 6, 4: 8}  # digits of the number to the level of arithmetic with such sums
_WON = 0.3  # least reward of a won game: the third and last round of a description game earns 1/3


def playpen(
    setting: Setting = Setting(env="guess:2"),
    describe: int = 2,  # digits of the number in the description game; 0: without that game
    learns: Literal["grpo", "dpo", "sft"] = "grpo",  # from all games, from preference pairs, or from won games
    unseen: str = "keyvalue:2",  # the held-out game, for evaluation only
    warmup_steps: int = BundledOnly(10),  # supervised steps on demonstrations before RL
    clip: float = 0.2,  # PPO clip range: ratios are clipped to [1 - clip, 1 + clip]
) -> Run:
    """GRPO, DPO or SFT on games that the policy played."""
    kinds: dict[str, tuple[Advantage, Loss, tuple[Gate, ...]]] = {
        "grpo": (GroupStandard(), Clip(clip, clip), ()),
        "dpo": (Constant(), Dpo(), (BestAndWorst(),)),
        "sft": (Constant(), Likelihood(), (Successes(_WON),)),
    }
    advantage, loss, gates = kinds[learns]
    run = setting.run("playpen", advantage, (loss,), gates=gates, warmup=shown(setting, "playpen", warmup_steps))
    if describe:
        _add(run, Describe(describe, setting.seed, Itself()))
    if describe and run.warmup is not None:
        run.warmup.envs = (*run.warmup.envs, Arithmetic(_SUMS[describe], setting.seed))
    played = Played(run.envs)
    wrap_envs(run, lambda env: (Refereed(env),))
    run.rewards = (*run.rewards, played)
    run.evaluation = replace(run.evaluation, unseen=tuple(map(Refereed, parse_envs(unseen, setting.seed))))
    return run


def _add(run: Run, env: Environment) -> None:
    """Add an environment to a run and its warm-up runs."""
    run.envs = (*run.envs, env)
    if run.warmup is not None:
        _add(run.warmup, env)
