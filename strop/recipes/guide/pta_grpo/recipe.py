"""PTA-GRPO: plan first, several rollouts per plan, and a reward for plans whose rollouts are often right.

Key: pta-grpo
Title: Plan Then Action: High-Level Planning Guidance Reinforcement Learning for LLM Reasoning
Paper: arXiv 2510.01833 (2025)
Claim: Better than GRPO and other baselines on ten mathematics benchmarks, for models of 3B to 14B.
Reading: The warm-up imitates the environments' worked solutions with a plan before each: their steps without results,
    in place of a larger model's summaries. Then 3 plans per task and 3 rollouts per plan. A rollout is rewarded for
    being right, for how often its plan's rollouts are right, and with weight 0.1 for its format; the paper's weights
    were not found. Tokens of a plan are trained once, with the mean advantage of its rollouts. All rollouts of a group
    are normalized together. The number of optimizer steps per batch was not found: one.
Left out: A reward for short plans, which reviews mention without a formula.
Acts: shared_token_share > 0 and reward/plan_quality > 0 with warmup_steps=12, env=arithmetic:1
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar

from strop.concurrency import together
from strop.environments.data.rows import PLAN as ROW_PLAN
from strop.environments.data.rows import text_in
from strop.environments.format.demonstrations import Works, demonstration
from strop.environments.format.think_tags import CLOSE, OPEN, between
from strop.environments.needs import EnvNeed
from strop.environments.wrappers.rewritten_demonstrations import Rewritten
from strop.errors import ConfigurationError
from strop.filter.rewards.weighted_sum import as_one
from strop.generate.policy import Policy
from strop.generate.tree_search.branch import branch_of, branched
from strop.recipes.guide.pta_grpo.reward import PlanQuality
from strop.recipes.setting import Setting
from strop.recipes.warmup import shown
from strop.roles import Agent, Dialogue, Episode, Player, Reward, Strategy
from strop.run import Run
from strop.training.advantages.along_tree import AlongTree
from strop.training.advantages.group_relative import GroupStandard
from strop.training.losses.clip import Clip
from strop.types import Group, Origin, Rollout, Start, Task

# Plans: the steps of a chain of thought without their results, between <plan> and </plan> before the completion.

PLAN, PLANNED = "<plan>", "</plan>"


def planned(completion: str, plan: str = "") -> str:
    """The completion with a plan before it: this one, its own, or its steps without their results; else unchanged."""
    if PLAN in completion:
        return completion
    plan = plan or demonstration(completion).plan or plan_of(completion)
    return f"{PLAN}{plan}{PLANNED}{completion}" if plan else completion


def plan_of(completion: str) -> str:
    """The left side of each step of the chain of thought, with ? for the previous step's result: `47+12 ?+30`."""
    thought = between(completion, OPEN, CLOSE)
    before, found = "", list[str]()
    for step in thought[0].split() if thought else ():
        left, _, result = step.partition("=")
        found.append(re.sub(rf"(?<!\w){re.escape(before)}(?!\w)", "?", left, count=1) if before else left)
        before = result
    return " ".join(found)


# Format reward for tagged parts: a plan, then a chain of thought, then the answer (PTA-GRPO, 2510.01833).


@dataclass(frozen=True)
class InParts(Reward):
    """1 if the last completion is one `<tag>...</tag>` per tag, in order, followed by an answer; else 0."""

    tags: tuple[str, ...] = ("plan", "think")  # of the parts, in order
    weight: float = 1.0

    is_inline: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not self.tags or not all(self.tags):
            raise ConfigurationError(f"InParts needs at least one tag and no empty one, got {self.tags}")

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


PLANS = EnvNeed(
    "plans",
    "add a column `plan` to each row, a plan to its worked text (`<plan>`, or a paragraph that begins with Plan:), or "
    "leave the warm-up out with warmup_steps=0",
    is_met_by=lambda env, task: not isinstance(env, Works) or bool((shown := env.demonstration(task)) and shown.plan),
)

# Demonstrations with plans, for the warm-up (PTA-GRPO, 2510.01833).
#
# Reading: the paper's plans are a larger model's summaries; here they are the steps without their results.


@dataclass(frozen=True)
class DemonstratePlan(Agent):
    """The demonstrations of `inner`, with a plan before each completion."""

    inner: Agent

    origin: ClassVar[Origin] = Origin.TEACHER

    env_needs: ClassVar[tuple[EnvNeed, ...]] = (PLANS,)

    async def rollout(self, task: Task, dialogue: Dialogue, episode: Episode) -> tuple[float, ...]:
        plan = text_in(task, ROW_PLAN)
        return await self.inner.rollout(task, dialogue, Rewritten(episode, lambda said: planned(said, plan)))


# PTA-GRPO's plans (2510.01833): several rollouts continue each plan.
#
# Readings: the first rollout of a plan samples it, the others have it as a prefix, so its tokens are trained once. A
# rollout without a plan, or with nothing after it, gets no siblings.


@dataclass
class Plans(Strategy):
    """One plan per start, and `chains` rollouts that continue it: the start's own and `chains` - 1 branches."""

    chains: int = 3  # rollouts of each plan

    _policy: Policy | None = field(default=None, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.chains < 2:
            raise ConfigurationError(f"Plans needs chains >= 2 rollouts per plan, got {self.chains}")

    def meet(self, policy: Policy) -> None:
        self._policy = policy

    async def __call__(self, group: Group, starts: Sequence[Start], play: Player) -> list[Rollout]:
        roots = await together(play(start) for start in starts)
        ends = [(root, self._end(root)) for root in roots if root.is_scored and len(root.turns) == 1]
        forks = [branch_of(root, end, play.another()) for root, end in ends if end for _ in range(self.chains - 1)]
        return [*roots, *await together(branched(start, play) for start in forks)]

    def _end(self, root: Rollout) -> int:
        """Number of tokens of the plan; 0 without a plan, or with nothing after it."""
        if self._policy is None:
            raise ConfigurationError("Plans has no policy yet: call meet(policy) first")
        tokens, template = root.turns[0].tokens, self._policy.template
        at = template.text(tokens).find(PLANNED)
        if at < 0:
            return 0
        size = int((template.places(tokens) <= at + len(PLANNED)).sum())
        return size if size < len(tokens) else 0


def pta_grpo(
    setting: Setting = Setting(group_size=3),
    chains: int = 3,  # rollouts per plan
    warmup_steps: int = 40,  # steps of supervised warm-up on plans
    quality: float = 1.0,  # weight of the plan's success rate in the reward
    form: float = 0.1,  # weight of the format reward: a plan, a chain of thought and an answer
) -> Run:
    """group_size is the number of plans; a group holds up to chains times as many rollouts."""
    run = setting.run(
        "pta_grpo",
        AlongTree(GroupStandard(), "mean"),
        (Clip(0.2, 0.2),),
        strategy=Plans(chains),
    )
    judged = as_one(run.rewards)
    run.rewards = (judged, PlanQuality(judged, quality), InParts(weight=form))
    before = shown(setting, "pta_grpo", warmup_steps)
    run.warmup = None if before is None else replace(before, agent=DemonstratePlan(before.agent))
    return run
