"""One policy learns to write down what helps, and to solve related tasks with it; each skill earns what it brings.

Title: Evolving-RL: End-to-End Optimization of Experience-Driven Self-Evolving Capability within Agents
Paper: arXiv 2605.10663 (2026)
Claim: Up to 98.7 % better, relatively, than GRPO on unseen tasks of ALFWorld, and 35.8 % on Mind2Web.
Reading: group_size skills are drawn from one episode and each is tried on the same related tasks. A skill earns the
    mean of its solvers, and 0 if it is badly formed; solvers are compared within a task, skills within an episode, and
    only then weighed, 0.2 and 1. The release rewards solvers with 10, which their division by the spread undoes. Its
    entropy coefficient of -0.03 for the extractor is a price, as it is subtracted. Clip 0.1 and 0.15, KL 0.01. The
    episode itself is a plain rollout that nobody is compared with. 8 skills and 4 tasks there, 4 and 2 here; the
    bundled model writes no prose, so that its skills are what it says when asked.
Left out: The embedding model, whose place word overlap takes, and skills that are kept from step to step.
Acts: credit_of/extractor > 0 and entropy_of/extractor > 0
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
from strop.generate.interfaces import Player
from strop.generate.strategies.support.ask_policy import OneCompletion
from strop.recipes.setting import Setting
from strop.roles import Advantage, Environment, Loss, Strategy
from strop.run import Run
from strop.text.rouge_l import rouge_l
from strop.training.advantages.group_standard import GroupStandard
from strop.training.batch import Batch, Output
from strop.training.losses.clip import Clip
from strop.training.losses.kl import Kl
from strop.training.reductions.sequence_mean import SequenceMean
from strop.training.requirements import Aux, Need
from strop.types import Group, Message, Metrics, Origin, Outcome, Rollout, Start, Task

# Evolving-RL's two roles (2605.10663): one policy writes skills from an episode, and solves related tasks with each.
#
# Reading: related tasks are those of the same environment whose questions share most with the source's, in place of an
# embedding model's. A skill stands before the question, as a system message.

EXTRACTOR = "extractor"  # the comparison group of skills, and what their turns are marked with
_LOOKED_AT = 8  # candidates for each related task
_LONGEST = 200  # characters of a skill
_ASKED = "Write down in one line what of this helps with other tasks of its kind."


@dataclass(frozen=True)
class ExtractAndSolve(Strategy):
    """A rollout of the task is the source; each start is a skill from it, tried on the same `related` tasks.

    Skills are compared with each other, and solvers with those of the same task. A skill is worth, as the fact `noted`,
    what its solvers earn on average, and 0 where it is empty or too long.
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
        skills = [_marked(each) for each in await together(play(start, OneCompletion()) for start in written)]
        tasks = related(env_of(self.envs, group.task), group.task, self.related, starts[0].key)
        formed = [skill for skill in skills if is_formed(skill)]
        begun = [(task, _begun(task, skill, play)) for task in tasks for skill in formed]
        solvers = await together(play(start, task=task) for task, start in begun)
        scores = await play.score(solvers)
        for place, skill in enumerate(formed):
            _worth(skill, [score for score in scores[place :: len(formed)] if score is not None])
        return [source, *skills, *solvers]


def related(env: Environment, task: Task, count: int, key: int) -> list[Task]:
    """Of some train tasks of the environment, those whose questions share most with this one's, itself left out."""
    places = np.random.default_rng(key).choice(1_000_000, count * _LOOKED_AT, replace=False)
    drawn = {each.id: each for each in (env.task(int(place)) for place in places) if each.id != task.id}
    if not drawn:
        raise ConfigurationError(f"environment {env.name} has no task beside {task.id}: nothing to try a skill on")
    ranked = sorted(drawn.values(), key=lambda each: -rouge_l(prompt_of(each), prompt_of(task)))
    return ranked[:count]


def is_formed(skill: Rollout) -> bool:
    """Whether there is something to show, and not too much of it."""
    return skill.is_scored and 0 < len(final_answer(skill.completion)) <= _LONGEST


def _question(source: Rollout) -> str:
    said = "\n".join(turn.message.content for turn in source.turns)
    return f"{prompt_of(source.task)}\n{said}\n{_ASKED}"


def _marked(skill: Rollout) -> Rollout:
    turns = tuple(replace(turn, aux={**turn.aux, EXTRACTOR: np.ones(1, np.float32)}) for turn in skill.turns)
    return replace(skill, turns=turns, facts={"noted": 0.0})


def _worth(skill: Rollout, told: Sequence[float]) -> None:
    """The mean of its solvers; where the environment failed them all, nobody knows it, and it is no 0."""
    if told:
        skill.facts["noted"] = sum(told) / len(told)
    else:
        skill.outcome, skill.error = Outcome.FAILED, "the environment failed all rollouts that tried this skill"


def _begun(task: Task, skill: Rollout, play: Player) -> Start:
    messages = (Message("system", final_answer(skill.completion)), *task.messages)
    return play.another(messages=messages, comparison_group=f"solver {task.id}", parent=skill.id, origin=Origin.GUIDED)


# Advantage of one comparison group of siblings times a factor, after it was compared: roles of one policy that weigh
# differently.


@dataclass(frozen=True)
class ComparisonGroupWeighted(Advantage):
    """What `inner` gives, times `factor` for rollouts of this comparison group."""

    inner: Advantage
    comparison_group: str = "extractor"  # whose advantage is weighed
    factor: float = 0.2  # of that comparison group's advantage

    is_local: ClassVar[bool] = True

    def __call__(self, groups: Sequence[Group]) -> None:
        self.inner(groups)
        for rollout in (rollout for group in groups for rollout in group.scored):
            if rollout.comparison_group == self.comparison_group and rollout.advantages is not None:
                rollout.advantages = rollout.advantages * np.float32(self.factor)

    def learn(self, groups: Sequence[Group]) -> Metrics:
        """Nothing; says how much advantage the comparison group has, of a token."""
        own = [
            rollout for group in groups for rollout in group.scored if rollout.comparison_group == self.comparison_group
        ]
        given = [np.abs(rollout.advantages) for rollout in own if rollout.advantages is not None]
        tokens = np.concatenate([np.zeros(0, np.float32), *given])
        return {f"credit_of/{self.comparison_group}": float(tokens.mean()) if len(tokens) else 0.0}


# A price on the entropy of one role: turns that a strategy marked (Evolving-RL, 2605.10663: the extractor's).


@dataclass(frozen=True)
class RoleEntropy(Loss):
    """The entropy at tokens of turns whose `aux` holds 1 under the role's name; a weight below 0 is a bonus."""

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
    extractor: float = 0.2,  # weight of skills' advantage; that of solvers is 1
    entropy: float = 0.03,  # price of entropy where skills are written
) -> Run:
    """A group is a rollout, group_size skills from it, and group_size * related rollouts of other tasks."""
    run = setting.run(
        "evolving_rl",
        ComparisonGroupWeighted(GroupStandard(), EXTRACTOR, extractor),
        (Clip(0.1, 0.15), Kl(weight=0.01), RoleEntropy(EXTRACTOR, entropy)),
        reduction=SequenceMean(),
    )
    run.strategy = ExtractAndSolve(run.envs, related)
    (judged,) = run.rewards
    run.rewards = (Noted(judged),)
    return run
