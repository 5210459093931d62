"""Evolving-RL: one policy extracts skills and solves related tasks with them; a skill's reward is its solvers' mean.

Title: Evolving-RL: End-to-End Optimization of Experience-Driven Self-Evolving Capability within Agents
Paper: arXiv 2605.10663 (2026)
Claim: Up to 98.7 % better, relatively, than GRPO on unseen tasks of ALFWorld, and 35.8 % on Mind2Web.
Reading: group_size skills are sampled from one episode and each is tried on the same related tasks. A skill's reward is
    the mean reward of its solvers, and 0 if it is badly formed. Solvers are normalized within a task, skills within an
    episode; the weights 1 (solvers) and 0.2 (skills) are applied afterwards. The release rewards solvers with 10, which
    the division by the standard deviation undoes. Its entropy coefficient of -0.03 for the extractor is subtracted from
    the loss, so it penalizes entropy. Clip 0.1 and 0.15, KL 0.01. The source episode is a plain rollout in a comparison
    group of its own. The paper uses 8 skills and 4 tasks, this recipe 4 and 2. The bundled model writes no prose: its
    skills are whatever it answers.
Left out: The embedding model (word overlap instead), and skills kept from step to step.
Acts: advantage_of/extractor > 0 and entropy_of/extractor > 0
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from strop.concurrency import together
from strop.environments.data.heldout_split import prompt_of
from strop.environments.data.lookup import env_of
from strop.environments.format.think_tags import final_answer
from strop.errors import ConfigurationError
from strop.filter.rewards.from_strategy import Noted
from strop.filter.rewards.weighted_sum import as_one
from strop.generate.strategies.support.ask_policy import OneCompletion
from strop.recipes.setting import Setting
from strop.roles import Advantage, Environment, Loss, Player, Strategy
from strop.run import Run
from strop.text.overlap import rouge_l
from strop.training.advantages.group_relative import GroupStandard
from strop.training.batch import Batch, Output
from strop.training.losses.clip import Clip
from strop.training.losses.kl import Kl
from strop.training.reductions.means import SequenceMean
from strop.training.requirements import Aux, Need
from strop.types import Group, Message, Metrics, Origin, Outcome, Rollout, Start, Task

# Evolving-RL's two roles (2605.10663): one policy writes skills from an episode and solves related tasks with each.
#
# Reading: related tasks are those of the same environment with the highest word overlap with the source question; the
# paper uses embeddings. A skill is the system message of its solvers.

EXTRACTOR = "extractor"  # the comparison group of skills, and the key of their turns in `aux`
_CANDIDATES = 8  # per related task
_LONGEST = 200  # characters of a skill
_ASKED = "Write down in one line what of this helps with other tasks of its kind."


@dataclass(frozen=True)
class ExtractAndSolve(Strategy):
    """One source rollout of the task; each start is a skill extracted from it and tried on the same `related` tasks.

    Skills form one comparison group, the solvers of each task another. The fact `noted` of a skill is the mean score of
    its solvers, and 0 where it is empty or too long.
    """

    envs: tuple[Environment, ...]
    related: int = 2  # tasks on which each skill is tried, never the source

    def __post_init__(self) -> None:
        if self.related < 1:
            raise ConfigurationError(f"ExtractAndSolve needs related >= 1, got {self.related}")

    async def __call__(self, group: Group, starts: Sequence[Start], play: Player) -> list[Rollout]:
        source = await play(play.another(comparison_group="source"))
        if not source.is_scored:
            return [source]
        asked = (Message("user", _question(source)),)
        written = [replace(start, messages=asked, comparison_group=EXTRACTOR) for start in starts]
        skills = [_labelled(each) for each in await together(play(start, OneCompletion()) for start in written)]
        tasks = related(env_of(self.envs, group.task), group.task, self.related, starts[0].key)
        formed = [skill for skill in skills if is_formed(skill)]
        pairs = [(task, _solver_start(task, skill, play)) for task in tasks for skill in formed]
        solvers = await together(play(start, task=task) for task, start in pairs)
        scores = await play.score(solvers)
        for place, skill in enumerate(formed):
            _record_worth(skill, [scored.reward for scored in scores[place :: len(formed)] if scored is not None])
        return [source, *skills, *solvers]


def related(env: Environment, task: Task, count: int, key: int) -> list[Task]:
    """The `count` sampled train tasks whose questions overlap most with this task's question; never the task itself."""
    places = np.random.default_rng(key).choice(1_000_000, count * _CANDIDATES, replace=False)
    others = {each.id: each for each in (env.task(int(place)) for place in places) if each.id != task.id}
    if not others:
        raise ConfigurationError(f"environment {env.name} has only one task, {task.id}: a skill needs another task")
    ranked = sorted(others.values(), key=lambda each: -rouge_l(prompt_of(each), prompt_of(task)))
    return ranked[:count]


def is_formed(skill: Rollout) -> bool:
    """Whether the skill is neither empty nor too long."""
    return skill.is_scored and 0 < len(final_answer(skill.completion)) <= _LONGEST


def _question(source: Rollout) -> str:
    completions = "\n".join(turn.message.content for turn in source.turns)
    return f"{prompt_of(source.task)}\n{completions}\n{_ASKED}"


def _labelled(skill: Rollout) -> Rollout:
    turns = tuple(replace(turn, aux={**turn.aux, EXTRACTOR: np.ones(1, np.float32)}) for turn in skill.turns)
    return replace(skill, turns=turns, facts={"noted": 0.0})


def _record_worth(skill: Rollout, scores: Sequence[float]) -> None:
    """Store the mean score of the solvers; where the environment failed all of them, the skill failed, too."""
    if scores:
        skill.facts["noted"] = sum(scores) / len(scores)
    else:
        skill.outcome, skill.error = Outcome.FAILED, "the environment failed all rollouts that tried this skill"


def _solver_start(task: Task, skill: Rollout, play: Player) -> Start:
    messages = (Message("system", final_answer(skill.completion)), *task.messages)
    return play.another(messages=messages, comparison_group=f"solver {task.id}", parent=skill.id, origin=Origin.GUIDED)


# Advantage scaled per comparison group after normalization: the roles of one policy have different weights.


@dataclass(frozen=True)
class ComparisonGroupWeighted(Advantage):
    """The advantage of `inner`, times `factor` for rollouts of one comparison group."""

    inner: Advantage
    comparison_group: str = "extractor"  # the scaled one
    factor: float = 0.2  # multiplies its advantage

    is_local: ClassVar[bool] = True

    def __call__(self, groups: Sequence[Group]) -> None:
        self.inner(groups)
        for rollout in (rollout for group in groups for rollout in group.scored):
            if rollout.comparison_group == self.comparison_group and rollout.advantages is not None:
                rollout.advantages = rollout.advantages * np.float32(self.factor)

    def learn(self, groups: Sequence[Group]) -> Metrics:
        """Learns nothing; reports the mean absolute advantage of a token of the comparison group."""
        own = [
            rollout for group in groups for rollout in group.scored if rollout.comparison_group == self.comparison_group
        ]
        given = [np.abs(rollout.advantages) for rollout in own if rollout.advantages is not None]
        tokens = np.concatenate([np.zeros(0, np.float32), *given])
        return {f"advantage_of/{self.comparison_group}": float(tokens.mean()) if len(tokens) else 0.0}


# Entropy penalty for one role (Evolving-RL, 2605.10663: the extractor).


@dataclass(frozen=True)
class RoleEntropy(Loss):
    """Entropy of tokens of turns whose `aux` holds 1 under the role's name; a negative weight is a bonus."""

    role: str
    weight: float = 0.03

    @property
    def needs(self) -> frozenset[Need]:
        return frozenset({Aux(self.role)})

    def __call__(self, output: Output, batch: Batch) -> tuple[Tensor, Metrics]:
        is_role = batch.aux[self.role].to(output.entropy.dtype)  # [T]
        loss = torch.where(batch.trainable, output.entropy * is_role, 0.0)
        return loss, {f"entropy_of/{self.role}": batch.metric(loss)}


def evolving_rl(
    setting: Setting = Setting(group_size=4, groups_per_step=4),
    related: int = 2,  # tasks on which each skill is tried
    extractor: float = 0.2,  # weight of the skills' advantage; the solvers' weight is 1
    entropy: float = 0.03,  # weight of the entropy penalty on skills
) -> Run:
    """A group: one source rollout, group_size skills from it, and group_size * related rollouts of other tasks."""
    run = setting.run(
        "evolving_rl",
        ComparisonGroupWeighted(GroupStandard(), EXTRACTOR, extractor),
        (Clip(0.1, 0.15), Kl(weight=0.01), RoleEntropy(EXTRACTOR, entropy)),
        reduction=SequenceMean(),
    )
    run.strategy = ExtractAndSolve(run.envs, related)
    judged = as_one(run.rewards)
    run.rewards = (Noted(judged),)
    return run
