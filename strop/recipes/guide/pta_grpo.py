"""A plan first, several ways to work it out, and pay for plans that lead there often.

Key: pta-grpo
Title: Plan Then Action: High-Level Planning Guidance Reinforcement Learning for LLM Reasoning
Paper: arXiv 2510.01833 (2025)
Claim: Better than GRPO and other baselines on ten mathematics benchmarks, for models of 3B to 14B.
Reading: The warm-up imitates the environments' solutions with a plan before each: their steps without results, in place
    of a larger model's summaries. Then 3 plans for a task and 3 rollouts of each; a rollout is paid for being right,
    for how often its plan's rollouts are right, and a tenth for its form; the paper's weights were not found. Tokens of
    a plan are trained once and credited with the mean of its rollouts. All rollouts of a group are compared, in units
    of their spread. Optimizer steps per batch are not known: one.
Left out: A pay for short plans, which reviews mention and do not spell out.
Acts: shared_token_share > 0 and reward/plan_quality > 0 with taught=12, env=arithmetic:1
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar

from strop.concurrency import together
from strop.environments.format.think_tags import CLOSE, OPEN, between
from strop.environments.wrappers.rewritten_demonstrations import Rewritten
from strop.errors import ConfigurationError
from strop.filter.rewards.plan_quality import PlanQuality
from strop.generate.interfaces import Dialogue, Player
from strop.generate.policy import Policy
from strop.generate.tree_search.branch import branch_of, branched
from strop.recipes.setting import Setting
from strop.recipes.warmup import shown
from strop.roles import Agent, Episode, Reward, Strategy
from strop.run import Run
from strop.training.advantages.along_tree import AlongTree
from strop.training.advantages.group_relative import GroupStandard
from strop.training.losses.clip import Clip
from strop.types import Group, Origin, Rollout, Start, Task

# Plans: how a completion's working will go, without its results, between <plan> and </plan> before it.

PLAN, PLANNED = "<plan>", "</plan>"


def planned(completion: str) -> str:
    """A completion with its plan before it; where it shows no working there is none to plan."""
    plan = plan_of(completion)
    return f"{PLAN}{plan}{PLANNED}{completion}" if plan else completion


def plan_of(completion: str) -> str:
    """The left side of each step of the working, with ? for the result of the step before: `47+12 ?+30`."""
    working = between(completion, OPEN, CLOSE)
    before, found = "", list[str]()
    for step in working[0].split() if working else ():
        left, _, result = step.partition("=")
        found.append(re.sub(rf"(?<!\w){re.escape(before)}(?!\w)", "?", left, count=1) if before else left)
        before = result
    return " ".join(found)


# A reward for completions of several tagged parts: a plan, then a thought, then the answer (PTA-GRPO, 2510.01833).


@dataclass(frozen=True)
class InParts(Reward):
    """1 where the last completion is `<tag>...</tag>` for each of the tags, each once, and then an answer; else 0."""

    tags: tuple[str, ...] = ("plan", "think")  # of the parts, in order
    weight: float = 1.0

    is_inline: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not self.tags or not all(self.tags):
            raise ConfigurationError(f"InParts needs the names of tags, got {self.tags}")

    def __call__(self, group: Group) -> list[float]:
        return [float(self._is_laid_out(rollout.completion)) for rollout in group.rollouts]

    def _is_laid_out(self, completion: str) -> bool:
        left = completion.strip()
        for tag in self.tags:
            opening, closing = f"<{tag}>", f"</{tag}>"
            if not left.startswith(opening) or (completion.count(opening), completion.count(closing)) != (1, 1):
                return False
            left = left.partition(closing)[2].strip()
        return bool(left)


# Let the environment show its solution with a plan before it (PTA-GRPO, 2510.01833): what the policy imitates at first.
#
# Reading: the paper's plans are a larger model's summaries; here they are the steps without their results.


@dataclass(frozen=True)
class DemonstratePlan(Agent):
    """`inner` shows what the environment demonstrates, each completion with its plan."""

    inner: Agent

    origin: ClassVar[Origin] = Origin.TEACHER

    async def rollout(self, task: Task, dialogue: Dialogue, episode: Episode) -> tuple[float, ...]:
        return await self.inner.rollout(task, dialogue, Rewritten(episode, planned))


# PTA-GRPO's plans (2510.01833): each rollout begins with a plan, and others work it out anew.
#
# Readings: a plan is written once, in the first rollout of its kind, and given to the others; so it is trained once. An
# rollout without a plan, or that says nothing behind it, stays alone.


@dataclass
class Plans(Strategy):
    """Every start writes a plan and works it out; `chains` - 1 more rollouts work out the same one.

    M starts make up to M * chains rollouts.
    """

    chains: int = 3  # rollouts of each plan

    _policy: Policy | None = field(default=None, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.chains < 2:
            raise ConfigurationError(f"Plans needs chains >= 2, or a plan is tried once, got {self.chains}")

    def meet(self, policy: Policy) -> None:
        self._policy = policy

    async def __call__(self, group: Group, starts: Sequence[Start], play: Player) -> list[Rollout]:
        roots = await together(play(start) for start in starts)
        ends = [(root, self._end(root)) for root in roots if root.is_scored and len(root.turns) == 1]
        forks = [branch_of(root, end, play.another()) for root, end in ends if end for _ in range(self.chains - 1)]
        return [*roots, *await together(branched(start, play) for start in forks)]

    def _end(self, root: Rollout) -> int:
        """Tokens of the plan; 0 where there is none, or nothing behind it."""
        if self._policy is None:
            raise ConfigurationError("Plans does not know how completions are written: call meet(policy) first")
        tokens, template = root.turns[0].tokens, self._policy.template
        at = template.text(tokens).find(PLANNED)
        if at < 0:
            return 0
        size = int((template.places(tokens) <= at + len(PLANNED)).sum())
        return size if size < len(tokens) else 0


def pta_grpo(
    setting: Setting = Setting(group_size=3),
    chains: int = 3,  # rollouts of each plan
    taught: int = 40,  # steps of supervised training on plans before
    quality: float = 1.0,  # weight of the pay for a plan's rollouts
    form: float = 0.1,  # weight of the pay for a plan, a thought and an answer
) -> Run:
    """group_size is the number of plans; a group is up to chains times as many rollouts."""
    run = setting.run(
        "pta_grpo",
        AlongTree(GroupStandard(), "mean"),
        (Clip(0.2, 0.2),),
        strategy=Plans(chains),
    )
    (judged,) = run.rewards
    run.rewards = (judged, PlanQuality(judged, quality), InParts(weight=form))
    before = shown(setting, "pta_grpo", taught)
    run.warmup = None if before is None else replace(before, agent=DemonstratePlan(before.agent))
    return run
