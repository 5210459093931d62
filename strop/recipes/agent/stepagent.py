"""Step by step, what an expert did is preferred to what the policy would have done in his place.

Title: From Novice to Expert: LLM Agent Policy Optimization via Step-wise Reinforcement Learning
Paper: arXiv 2411.03817 (2024)
Claim: Rewards for single steps, from comparing an agent's actions with an expert's, beat those for whole attempts.
Reading: The full text was not found; the implicit form as surveys tell it: DPO on pairs of actions behind the expert's
    own history, whose log-ratio is the step's reward. The policy's actions are sampled anew in each step. Where all of
    them are the expert's there is no pair, and another task takes the place; of several the one that is furthest off.
    form=inverse: a discriminator pays steps that it cannot tell from the expert's, and learns after it was asked.
Left out: PPO's ratio in the inverse form: one optimizer step per batch has none.
Acts: kept_share < 1 and margin != 0 and share/branched > 0
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from strop.concurrency import together
from strop.environments.format.demonstrations import demonstrating
from strop.errors import ConfigurationError
from strop.filter.gates.best_vs_worst_pair import BestAndWorst
from strop.filter.gates.zero_variance import ZeroVariance
from strop.filter.rewards.from_strategy import Noted
from strop.generate.agents.demonstrator import Demonstrate
from strop.generate.agents.single_action import OneAction
from strop.generate.agents.support.episode_replay import where_it_stands
from strop.generate.interfaces import Dialogue, Player
from strop.generate.tree_search.branch import branch_of
from strop.generate.turn_ops import as_prefix
from strop.recipes.setting import Setting
from strop.roles import Advantage, Agent, Episode, Strategy
from strop.run import Run
from strop.training.advantages.constant import Constant
from strop.training.arithmetic.td_traces import whitened
from strop.training.losses.pairs.dpo import Dpo
from strop.training.losses.reinforce import Reinforce
from strop.training.reductions.sequence_mean import SequenceMean
from strop.training.requirements import HIDDEN_AFTER, PolicyStatistic
from strop.types import Group, Message, Metrics, Origin, Rollout, Start, Task

# StepAgent's expert (2411.03817): what the environment would do where the rollout stands, and nothing more.


@dataclass(frozen=True)
class OneDemonstration(Agent):
    """Says one demonstration behind the turns that are there, and is paid `worth` for it."""

    worth: float = 2.0  # of the expert's action, as `OneAction` pays it

    origin: ClassVar[Origin] = Origin.TEACHER

    async def rollout(self, task: Task, dialogue: Dialogue, episode: Episode) -> tuple[float, ...]:
        expert = demonstrating(episode)
        before = await where_it_stands(task, dialogue, episode, must_go_on=True)
        if dialogue.is_cut:
            return (0.0,) * len(before)
        shown = expert.demonstrate()
        dialogue.say(shown)
        await episode.step(shown)
        return (*(0.0 for _ in before), self.worth)


# One turn behind those that are given (StepAgent, 2411.03817): the policy's own, or one that is said in its place.


@dataclass(frozen=True)
class OneStep(Agent):
    """The environment is brought to where the given turns lead, and one more is taken; what comes of it is not asked.

    Where the given turns fill the context, there is no room for one more.
    """

    said: str | None = None  # in place of the policy's completion

    origin: ClassVar[Origin] = Origin.BRANCHED

    async def rollout(self, task: Task, dialogue: Dialogue, episode: Episode) -> tuple[float, ...]:
        await where_it_stands(task, dialogue, episode)
        if dialogue.is_cut:
            return ()
        if self.said is None:
            await dialogue.completion()
        else:
            dialogue.say(Message("assistant", self.said))
        return ()


# StepAgent's inspection (2411.03817): behind an expert's own past, what he did next and what the policy would do.


@dataclass(frozen=True)
class BesideExpert(Strategy):
    """The first rollout of a group is `shower`'s, the others are `actor`'s, all after the same turns of `expert`.

    How many turns, from none to all but the last, the group's first key says; they are read and never trained. Where
    the environment fails the expert, nothing is brought.
    """

    expert: Agent
    shower: Agent
    actor: Agent

    async def __call__(self, group: Group, starts: Sequence[Start], play: Player) -> list[Rollout]:
        if len(starts) < 2:
            raise ConfigurationError(f"BesideExpert needs group_size >= 2, one for the expert, got {len(starts)}")
        whole = await play(play.another(), self.expert)
        if not whole.is_scored or not whole.turns:
            return []
        before = int(np.random.default_rng(starts[0].key).integers(len(whole.turns)))
        at = sum(len(turn.tokens) for turn in whole.turns[:before])
        chosen = [branch_of(whole, at, start) if at else start for start in starts]
        chosen[0] = replace(chosen[0], origin=Origin.TEACHER)  # a branch, too, holds his tokens
        agents = [self.shower] + [self.actor] * (len(starts) - 1)
        return await together(play(start, agent) for start, agent in zip(chosen, agents, strict=True))


# StepAgent's inspection (2411.03817): behind each step of an expert the policy says what it would do there itself.
#
# The history is the expert's, so mistakes that add up are never seen, as in the paper. Reading: which steps are
# compared is left to probability, as many as there are starts; steps that say the same are a pair too, of which nobody
# can
# be told.

WORTH = "noted"  # the fact of whose step it is: 1 the expert's, 0 the policy's


@dataclass(frozen=True)
class ExpertSteps(Strategy):
    """Pairs of the expert's step and the policy's, each a comparison group, behind the steps before it, which are
    given.
    """

    expert: Agent

    async def __call__(self, group: Group, starts: Sequence[Start], play: Player) -> list[Rollout]:
        shown = await play(play.another(), self.expert)
        if not shown.is_scored or not shown.turns:
            return [shown]
        count = min(len(starts), len(shown.turns))
        rng = np.random.default_rng(starts[0].key)
        steps = sorted(rng.choice(len(shown.turns), count, replace=False).tolist())
        pairs = await together(self._pair(shown, at, start, play) for at, start in zip(steps, starts, strict=False))
        return [rollout for pair in pairs for rollout in pair]

    async def _pair(self, shown: Rollout, at: int, start: Start, play: Player) -> tuple[Rollout, Rollout]:
        told = replace(start, turns=as_prefix(shown.turns[:at]), parent=shown.id, comparison_group=f"{shown.id}@{at}")
        another = play.another()
        taught = replace(told, id=another.id, key=another.key, origin=Origin.TEACHER)
        expert = await play(taught, OneStep(shown.turns[at].message.content))
        own = await play(replace(told, origin=Origin.BRANCHED), OneStep())
        return _noted(expert, 1.0), _noted(own, 0.0)


def _noted(rollout: Rollout, worth: float) -> Rollout:
    return replace(rollout, facts=rollout.facts | {WORTH: worth})


# StepAgent's inverse form (2411.03817, as in GAIL): who cannot be told from the expert is paid, step by step.
#
# D(h, a) = P(expert), a logistic regression on the state after the step; its loss is -log D of the expert's steps and
# -log(1 - D) of the policy's. A step of the policy is paid -log(1 - D), D within 0.001 and 0.999: log D is never above
# 0
# and would pay for ending early. Reading: advantage is that, standardised over the batch; D learns after it was asked,
# a
# few
# steps of descent on the batch. The expert's steps get no advantage.

_EDGE = 1e-3  # D stays so far from 0 and 1
_SMALLEST = 1e-9  # length of a state


@dataclass
class Discriminated(Advantage):
    """One D for the whole run; at first it cannot tell anybody apart, and nobody has advantage."""

    rate: float = 0.5  # of its descent
    steps: int = 20  # of descent on each batch

    needs: ClassVar[frozenset[PolicyStatistic]] = frozenset({HIDDEN_AFTER})

    _slopes: NDArray[np.float64] = field(default_factory=lambda: np.zeros(0), init=False, repr=False, compare=False)
    _level: float = field(default=0.0, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.rate <= 0 or self.steps < 1:
            raise ConfigurationError(f"Discriminated needs rate > 0 and steps >= 1, got {self.rate} and {self.steps}")

    def __call__(self, groups: Sequence[Group]) -> None:
        rollouts = [rollout for group in groups for rollout in group.scored]
        own = [rollout for rollout in rollouts if not is_expert(rollout)]
        for rollout in rollouts:
            rollout.set_advantage(0.0)
        paid = [np.array([-np.log1p(-self.told(rollout))]) for rollout in own]
        for rollout, (advantage,) in zip(own, whitened(paid), strict=True):
            rollout.set_advantage(float(advantage))

    def told(self, rollout: Rollout) -> float:
        """D of a rollout's last step; 1/2 as long as nothing was learned."""
        if not len(self._slopes) or not rollout.num_tokens:
            return 0.5
        sure = _sigmoid(features(rollout) @ self._slopes + self._level)
        return float(np.clip(sure, _EDGE, 1 - _EDGE))

    def learn(self, groups: Sequence[Group]) -> Metrics:
        """Tell them better apart next time; how many were told apart this time, and D of the policy's steps."""
        rollouts = [rollout for group in groups for rollout in group.scored if rollout.num_tokens]
        if not rollouts:
            return {}
        is_taught = np.array([is_expert(rollout) for rollout in rollouts])
        before = np.array([self.told(rollout) for rollout in rollouts])
        self._fit(np.stack([features(rollout) for rollout in rollouts]), is_taught.astype(np.float64))
        right = np.where(is_taught, before > 0.5, before < 0.5)
        passed = {"imitation": float(before[~is_taught].mean())} if not is_taught.all() else {}
        return {"discriminated": float(right.mean()), **passed}

    def _fit(self, table: NDArray[np.float64], targets: NDArray[np.float64]) -> None:
        """Descend on the mean of -y log D - (1 - y) log(1 - D): [R, F], [R]."""
        if not len(self._slopes):
            self._slopes = np.zeros(table.shape[1])
        for _ in range(self.steps):
            missed = _sigmoid(table @ self._slopes + self._level) - targets  # [R]
            self._slopes = self._slopes - self.rate * (missed @ table) / len(targets)
            self._level -= self.rate * float(missed.mean())

    def state(self) -> dict[str, Any]:
        return {"slopes": self._slopes.tolist(), "level": self._level}

    def restore(self, state: dict[str, Any]) -> None:
        self._slopes, self._level = np.array(state["slopes"], dtype=np.float64), float(state["level"])


def is_expert(rollout: Rollout) -> bool:
    return rollout.origin is Origin.TEACHER


def features(rollout: Rollout) -> NDArray[np.float64]:
    """The state after the last token, of length 1: [F]."""
    state: NDArray[np.float64] = HIDDEN_AFTER.of(rollout)[-1].astype(np.float64)
    return state / max(float(np.linalg.norm(state)), _SMALLEST)


def _sigmoid(values: Any) -> Any:
    return 1 / (1 + np.exp(-np.clip(values, -50, 50)))


def stepagent(
    setting: Setting = Setting(env="keyvalue:5", group_size=4),
    form: Literal["implicit", "inverse"] = "implicit",  # preferences, or a discriminator
    beta: float = 0.1,  # implicit: of the reward that log(policy / reference) stands for
    rate: float = 0.5,  # inverse: of the discriminator's descent
) -> Run:
    """One of group_size actions is the expert's; in the inverse form group_size steps have a pair each."""
    if form == "inverse":
        return _inverse(setting, rate)
    strategy = BesideExpert(Demonstrate(), OneDemonstration(), OneAction())
    parts = {"strategy": strategy, "gates": (BestAndWorst(),), "reduction": SequenceMean()}
    return setting.run("stepagent", Constant(), (Dpo(beta),), **parts)


def _inverse(setting: Setting, rate: float) -> Run:
    strategy = ExpertSteps(Demonstrate())
    parts = {"strategy": strategy, "gates": (ZeroVariance(),), "reduction": SequenceMean()}
    run = setting.run("stepagent", Discriminated(rate), (Reinforce(),), **parts)
    (judged,) = run.rewards
    run.rewards = (Noted(judged),)
    return run
