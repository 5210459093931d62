"""RuscaRL: GRPO on rubric rewards; early in training, siblings read decreasing parts of the rubric as a scaffold.

Title: Breaking the Exploration Bottleneck: Rubric-Scaffolded Reinforcement Learning for General LLM Reasoning
Paper: arXiv 2508.16949 (2025)
Claim: From 23.6 to 50.3 on HealthBench-500 at 7B, where the same without the scaffold stays behind.
Reading: Old log-probabilities are computed with the plain prompt, so that ratios start at 1: the scaffold is not
    corrected for, as in the paper. The scaffold falls steeply at one fifth of the run. Stand-in rules replace the LLMs
    that write and judge rubrics: one item per step of a sum, 5 points each. Temperature 0.7, two optimizer steps per
    batch and the mean over tokens, as in the release. The environment's own reward is logged with weight 0.
Left out: The sentence that forbids mentioning the rubric, and its place in the system prompt: the bundled model reads
    neither (`Scaffolded.shows` takes both). Top-p 0.8 and top-k 20 sampling: ratios would belong to another
    distribution than the one sampled from.
Acts: scaffold_share > 0 and reward/rubric_points > 0 with steps=3, env=arithmetic:6
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from strop.concurrency import together
from strop.errors import ConfigurationError, LLMClientError
from strop.filter.judges.batch_ask import all_of, judged, text_of, transcript
from strop.filter.judges.checklist_items import FACT, Item
from strop.filter.judges.readers import YES_NO
from strop.filter.judges.rubric import JUDGED, WANTED, rubric_of
from strop.recipes.environment_specs import measured
from strop.recipes.named_parts import named_parts, reward_seconds
from strop.recipes.setting import Setting
from strop.roles import LLMClient, Player, Reward, Strategy
from strop.run import Run
from strop.standins.judges.outcomes import judged_rubric, written_rubric
from strop.text.llm_prompt import judgement
from strop.training.advantages.group_relative import GroupStandard
from strop.training.corrections.importance_weights import Clamped
from strop.training.losses.clip import Clip
from strop.training.losses.kl import Kl
from strop.types import Group, Message, Metrics, Origin, Rollout, Start, Task

# RuscaRL's reward (2508.16949): points of the rubric items that a completion meets, over all positive points.
#
# Reading: a verdict other than yes or no does not count; a rollout with an unjudged item has no reward.


@dataclass(frozen=True)
class RubricPoints(Reward):
    """sum(points of items that are met) / sum(positive points): at most 1; negative items can make it negative."""

    task_generator: LLMClient  # writes rubrics
    judge: LLMClient  # judges whether a completion meets an item
    weight: float = 1.0
    prompt_rubric: str = WANTED  # how a rubric is asked for, below the task
    prompt_item: str = JUDGED  # how an item is judged, below task, completion and requirement

    is_inline: ClassVar[bool] = True  # it only waits for its LLM clients

    async def __call__(self, group: Group) -> list[float]:
        if not group.rollouts:
            return []
        items = await rubric_of(group.task, self.task_generator, self.prompt_rubric)
        return await all_of(self._score(rollout, items) for rollout in group.rollouts)

    async def _score(self, rollout: Rollout, items: list[Item]) -> float:
        verdicts = await all_of(self._verdict(rollout, item) for item in items)
        rollout.facts |= {f"{FACT}{place}": float(met) for place, met in enumerate(verdicts)}
        earned = sum(item.weight for item, met in zip(items, verdicts, strict=True) if met)
        return earned / sum(item.weight for item in items if item.weight > 0)

    async def _verdict(self, rollout: Rollout, item: Item) -> bool:
        asked = judgement(
            self.prompt_item, task=text_of(rollout.task), completion=transcript(rollout), requirement=item.text
        )
        return await judged(self.judge, asked, YES_NO) == 1


# RuscaRL's scaffold (2508.16949): siblings read parts of the rubric, less and less of it, and are trained without it.
#
# Readings: the first of n siblings reads most, the last nothing. Items are a random subset in their order. They follow
# the question; the paper has them in the system prompt. If no rubric can be written, rollouts have no scaffold.

SCAFFOLD = "scaffold"  # the fact that holds the share of the rubric in a rollout's prompt
_LARGEST = 700.0  # exponent


@dataclass(frozen=True)
class Scaffolded(Strategy):
    """Sibling i of n reads round(share * items), share = (n - 1 - i) / (n - 1) / (1 + exp(steepness * (x - fall))).

    x is the elapsed fraction of the run.
    """

    task_generator: LLMClient  # writes rubrics, the same as the reward's
    steps: int  # of the run
    fall: float = 0.2  # fraction of the run at which half of the scaffold is gone
    steepness: float = 125.0  # of the fall
    shows: str = "{question} hint: {items}"  # prompt with the scaffold

    def __post_init__(self) -> None:
        if self.steps < 1 or "{question}" not in self.shows or "{items}" not in self.shows:
            raise ConfigurationError(
                f"Scaffolded needs steps >= 1 and {{question}} and {{items}} in shows, got {self.steps}, {self.shows!r}"
            )

    def problems(self, run: Run) -> list[str]:
        few = run.budget.size is not None and run.budget.size < 2
        return ["siblings read different shares of a rubric: need group_size >= 2, got 1"] if few else []

    async def __call__(self, group: Group, starts: Sequence[Start], play: Player) -> list[Rollout]:
        try:
            items = await rubric_of(group.task, self.task_generator)
        except LLMClientError:
            items = []
        counts = [
            round(self.share(index, len(starts), start.version) * len(items)) for index, start in enumerate(starts)
        ]
        played = zip(starts, counts, strict=True)
        return await together(
            self._rollout(start, group.task, _sampled(items, count, start), play) for start, count in played
        )

    def share(self, index: int, size: int, version: int) -> float:
        """Share of the rubric that this sibling reads."""
        over = version / max(self.steps - 1, 1)
        faded = 1 / (1 + math.exp(min(self.steepness * (over - self.fall), _LARGEST)))
        return (size - 1 - index) / max(size - 1, 1) * faded

    def learn(self, groups: Sequence[Group]) -> Metrics:
        """The mean share of the rubric in the rollouts' prompts."""
        shown = [rollout.facts.get(SCAFFOLD, 0.0) for group in groups for rollout in group.scored]
        return {"scaffold_share": sum(shown) / max(len(shown), 1)}

    async def _rollout(self, start: Start, task: Task, items: tuple[list[str], float], play: Player) -> Rollout:
        shown, share = items
        if not shown:
            return await play(start)
        rollout = await play(replace(start, messages=self._with_items(task, shown), origin=Origin.GUIDED))
        plain = play.retold(rollout, task.messages) if rollout.turns else rollout
        return replace(plain, facts=plain.facts | {SCAFFOLD: share})

    def _with_items(self, task: Task, items: list[str]) -> tuple[Message, ...]:
        *before, last = task.messages
        text = self.shows.replace("{question}", last.content).replace("{items}", " ".join(items))
        return (*before, replace(last, content=text))


def _sampled(items: Sequence[Item], count: int, start: Start) -> tuple[list[str], float]:
    """A random subset of `count` items in their order, and its share of all items."""
    places = np.random.default_rng(start.key).permutation(len(items))[:count]
    return [items[place].text for place in sorted(places.tolist())], count / max(len(items), 1)


def ruscarl(
    setting: Setting = Setting(env="arithmetic:6", temperature=0.7),
    judge: str = "rules",  # writes rubrics and judges by them (a named part)
    fall: float = 0.2,  # fraction of the run at which half of the scaffold is gone
    steepness: float = 125.0,  # of the scaffold's fall
    kl: float = 0.001,  # weight of the KL penalty to the initial policy
) -> Run:
    """Siblings read from all of the rubric down to nothing, until the scaffold falls."""
    task_generator, scorer = named_parts("judge", judge, setting, written_rubric, judged_rubric)
    run = setting.run(
        "ruscarl",
        GroupStandard(),
        (Clip(0.2, 0.2, anchor="proximal"), Kl(weight=kl)),
        strategy=Scaffolded(task_generator, setting.steps, fall, steepness),
        correction=Clamped(1.0, 1.0, target="proximal"),  # as in the paper, the scaffold is not corrected for
        minibatches=2,
    )
    truth = measured(run.envs)
    run.rewards, run.reward_seconds = (RubricPoints(task_generator, scorer), truth), reward_seconds(judge)
    return run
