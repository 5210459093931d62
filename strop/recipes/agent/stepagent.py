"""StepAgent: step-wise DPO of expert actions over policy actions, or a GAIL discriminator, after expert prefixes.

Title: From Novice to Expert: LLM Agent Policy Optimization via Step-wise Reinforcement Learning
Paper: arXiv 2411.03817 (2024)
Claim: Rewards for single steps, from comparing an agent's actions with an expert's, beat those for whole rollouts.
Reading: The full text was not found. form=implicit is as surveys describe it: DPO on pairs of actions after the
    expert's own history, with the log-ratio as the step's reward. The policy's actions are sampled anew in each step.
    A group in which all actions equal the expert's has no pair and is replaced by another task; of several different
    actions the one with the lowest reward is used. form=inverse: a discriminator rewards steps that it cannot tell from
    the expert's, and is trained after it scored them.
Left out: PPO's ratio in the inverse form: with one optimizer step per batch it is 1.
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
from strop.environments.needs import DEMONSTRATIONS, TURNS, EnvNeed
from strop.errors import ConfigurationError
from strop.filter.gates.best_vs_worst_pair import BestAndWorst
from strop.filter.gates.zero_variance import ZeroVariance
from strop.filter.rewards.from_strategy import Noted
from strop.filter.rewards.weighted_sum import as_one
from strop.generate.agents.demonstrator import Demonstrate
from strop.generate.agents.single_action import OneAction
from strop.generate.agents.support.episode_loop import where_it_stands
from strop.generate.tree_search.branch import branch_of
from strop.generate.turn_ops import as_prefix
from strop.recipes.setting import Setting
from strop.roles import Advantage, Agent, Dialogue, Episode, Player, Strategy
from strop.run import Run
from strop.training.advantages.constant import Constant
from strop.training.arithmetic.td_traces import whitened
from strop.training.losses.preference_pairs import Dpo
from strop.training.losses.reinforce import Reinforce
from strop.training.reductions.means import SequenceMean
from strop.training.requirements import HIDDEN_AFTER, PolicyStatistic
from strop.types import Group, Message, Metrics, Origin, Rollout, Start, Task

# StepAgent's expert (2411.03817): the environment's demonstration of one step.


@dataclass(frozen=True)
class OneDemonstration(Agent):
    """Agent that continues a prefix with one demonstrated turn, of reward `worth`."""

    worth: float = 2.0  # reward of the expert's action, as in `OneAction`

    origin: ClassVar[Origin] = Origin.TEACHER
    env_needs: ClassVar[tuple[EnvNeed, ...]] = (DEMONSTRATIONS, TURNS)

    async def rollout(self, task: Task, dialogue: Dialogue, episode: Episode) -> tuple[float, ...]:
        expert = demonstrating(episode)
        before = await where_it_stands(task, dialogue, episode, must_go_on=True)
        if dialogue.is_cut:
            return (0.0,) * len(before)
        shown = expert.demonstrate()
        dialogue.say(shown)
        await episode.step(shown)
        return (*(0.0 for _ in before), self.worth)


# One turn after a prefix (StepAgent, 2411.03817): the policy's own, or a scripted one.


@dataclass(frozen=True)
class OneStep(Agent):
    """Agent that replays a prefix in the environment and adds one turn without executing it.

    It adds none where the prefix fills the context.
    """

    scripted: str | None = None  # text in place of a sampled completion

    origin: ClassVar[Origin] = Origin.BRANCHED

    async def rollout(self, task: Task, dialogue: Dialogue, episode: Episode) -> tuple[float, ...]:
        await where_it_stands(task, dialogue, episode)
        if dialogue.is_cut:
            return ()
        if self.scripted is None:
            await dialogue.completion()
        else:
            dialogue.say(Message("assistant", self.scripted))
        return ()


# StepAgent's comparison (2411.03817): the expert's next action and the policy's, after the same expert prefix.


@dataclass(frozen=True)
class ExpertStepGroup(Strategy):
    """Group of one expert step (`shower`) and several policy steps (`actor`) after the same prefix of `expert`.

    The number of prefix turns, from 0 to all but the last, is sampled from the group's first key; they have no loss.
    The group is empty if the expert's rollout fails.
    """

    expert: Agent  # writes the prefix
    shower: Agent  # takes the expert's step
    actor: Agent  # takes the policy's steps

    async def __call__(self, group: Group, starts: Sequence[Start], play: Player) -> list[Rollout]:
        if len(starts) < 2:
            raise ConfigurationError(f"ExpertStepGroup needs group_size >= 2, one for the expert, got {len(starts)}")
        whole = await play(play.another(), self.expert)
        if not whole.is_scored or not whole.turns:
            return []
        before = int(np.random.default_rng(starts[0].key).integers(len(whole.turns)))
        at = sum(len(turn.tokens) for turn in whole.turns[:before])
        chosen = [branch_of(whole, at, start) if at else start for start in starts]
        chosen[0] = replace(chosen[0], origin=Origin.TEACHER)  # a branch has tokens of the expert, too
        agents = [self.shower] + [self.actor] * (len(starts) - 1)
        return await together(play(start, agent) for start, agent in zip(chosen, agents, strict=True))


# StepAgent's comparison (2411.03817) for the inverse form: pairs of an expert's step and the policy's.
#
# The history is the expert's, so the policy never sees states after its own mistakes, as in the paper. Reading: as many
# random steps as there are starts are compared; identical steps are a pair, too, and D learns 1/2 from it.

WORTH = "noted"  # fact: 1 for the expert's step, 0 for the policy's


@dataclass(frozen=True)
class ExpertStepPairs(Strategy):
    """Pairs of the expert's step and the policy's, each after an expert prefix and with its own comparison group."""

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
        prefixed = replace(
            start, turns=as_prefix(shown.turns[:at]), parent=shown.id, comparison_group=f"{shown.id}@{at}"
        )
        another = play.another()
        taught = replace(prefixed, id=another.id, key=another.key, origin=Origin.TEACHER)
        expert = await play(taught, OneStep(shown.turns[at].message.content))
        own = await play(replace(prefixed, origin=Origin.BRANCHED), OneStep())
        return _labelled(expert, 1.0), _labelled(own, 0.0)


def _labelled(rollout: Rollout, worth: float) -> Rollout:
    return replace(rollout, facts=rollout.facts | {WORTH: worth})


# StepAgent's inverse form (2411.03817, as in GAIL): a discriminator rewards steps that look like the expert's.
#
# D(h, a) = P(expert) is a logistic regression on the hidden state after the step; its loss is -log D on the expert's
# steps and -log(1 - D) on the policy's. The reward of a policy step is -log(1 - D), with D clipped to [0.001, 0.999];
# log D is never positive and would reward early ends. Reading: the advantage is the reward, standardized over the
# batch; D is trained after scoring, by a few gradient steps on the batch. The expert's steps get advantage 0.

_EDGE = 1e-3  # D is clipped to [_EDGE, 1 - _EDGE]
_SMALLEST = 1e-9  # lower bound of the norm of a state


@dataclass
class DiscriminatorAdvantage(Advantage):
    """Standardized -log(1 - D) of the policy's steps; D starts at 1/2, where all advantages are 0."""

    rate: float = 0.5  # learning rate of D
    steps: int = 20  # gradient steps of D on each training batch

    needs: ClassVar[frozenset[PolicyStatistic]] = frozenset({HIDDEN_AFTER})

    _slopes: NDArray[np.float64] = field(default_factory=lambda: np.zeros(0), init=False, repr=False, compare=False)
    _level: float = field(default=0.0, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.rate <= 0 or self.steps < 1:
            raise ConfigurationError(
                f"DiscriminatorAdvantage needs rate > 0 and steps >= 1, got {self.rate} and {self.steps}"
            )

    def __call__(self, groups: Sequence[Group]) -> None:
        rollouts = [rollout for group in groups for rollout in group.scored]
        own = [rollout for rollout in rollouts if not is_expert(rollout)]
        for rollout in rollouts:
            rollout.set_advantage(0.0)
        rewards = [np.array([-np.log1p(-self.probability(rollout))]) for rollout in own]
        for rollout, (advantage,) in zip(own, whitened(rewards), strict=True):
            rollout.set_advantage(float(advantage))

    def probability(self, rollout: Rollout) -> float:
        """D of a rollout's last step; 1/2 before the first fit."""
        if not len(self._slopes) or not rollout.num_tokens:
            return 0.5
        probability = _sigmoid(features(rollout) @ self._slopes + self._level)
        return float(np.clip(probability, _EDGE, 1 - _EDGE))

    def learn(self, groups: Sequence[Group]) -> Metrics:
        """Fit D; metrics from before the fit: its accuracy, and the mean D of the policy's steps."""
        rollouts = [rollout for group in groups for rollout in group.scored if rollout.num_tokens]
        if not rollouts:
            return {}
        is_taught = np.array([is_expert(rollout) for rollout in rollouts])
        before = np.array([self.probability(rollout) for rollout in rollouts])
        self._fit(np.stack([features(rollout) for rollout in rollouts]), is_taught.astype(np.float64))
        right = np.where(is_taught, before > 0.5, before < 0.5)
        passed = {"imitation": float(before[~is_taught].mean())} if not is_taught.all() else {}
        return {"discriminated": float(right.mean()), **passed}

    def _fit(self, table: NDArray[np.float64], targets: NDArray[np.float64]) -> None:
        """Gradient descent on the mean of -y log D - (1 - y) log(1 - D): [R, F], [R]."""
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
    """The hidden state after the last token, normalized to length 1: [F]."""
    state: NDArray[np.float64] = HIDDEN_AFTER.of(rollout)[-1].astype(np.float64)
    return state / max(float(np.linalg.norm(state)), _SMALLEST)


def _sigmoid(values: Any) -> Any:
    return 1 / (1 + np.exp(-np.clip(values, -50, 50)))


def stepagent(
    setting: Setting = Setting(env="keyvalue:5", group_size=4),
    form: Literal["implicit", "inverse"] = "implicit",  # implicit: DPO; inverse: a discriminator
    beta: float = 0.1,  # implicit: DPO's beta
    rate: float = 0.5,  # inverse: learning rate of the discriminator
) -> Run:
    """One of group_size actions is the expert's; in the inverse form a group has group_size pairs of steps."""
    if form == "inverse":
        return _inverse(setting, rate)
    strategy = ExpertStepGroup(Demonstrate(), OneDemonstration(), OneAction())
    parts = {"strategy": strategy, "gates": (BestAndWorst(),), "reduction": SequenceMean()}
    return setting.run("stepagent", Constant(), (Dpo(beta),), **parts)


def _inverse(setting: Setting, rate: float) -> Run:
    strategy = ExpertStepPairs(Demonstrate())
    parts = {"strategy": strategy, "gates": (ZeroVariance(),), "reduction": SequenceMean()}
    run = setting.run("stepagent", DiscriminatorAdvantage(rate), (Reinforce(),), **parts)
    judged = as_one(run.rewards)
    run.rewards = (Noted(judged),)
    return run
