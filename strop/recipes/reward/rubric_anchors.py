"""Rubric Anchors: GRPO on saturating rubric scores with vetoes; an anti-hacking veto is added in stage two.

Title: Reinforcement Learning with Rubric Anchors
Paper: arXiv 2508.12790 (2025)
Claim: 5.2 % more on open-ended tasks from 5,000 samples and 10,000 rubrics, 2.4 % above a model of 671B.
Reading: The paper gives no equations for its aggregation: veto and saturation follow the text, the constant is ours; a
    veto criterion is met from a score of 50 of 100. The first stage is a run of its own before this one, on the same
    rubrics without the veto against hacking. Groups are kept if their mean reward is within a central band, where the
    paper filters tasks once by the scores of the initial model. Rules stand in for the rubric bank and the judge
    (`judge=http://...#MODEL` asks a model). The environment's own reward is logged with weight 0.
Left out: Interactions of dimensions and the stretching of high scores, for which no form was found; rubrics for style.
Acts: reward/rubric_anchors > 0 and fact/vetoed > 0 and kept_share < 1 with first=1
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, replace
from typing import ClassVar

from strop.errors import ConfigurationError
from strop.filter.gates.reward_band import RewardBand
from strop.filter.judges.batch_ask import all_of, text_of, unread
from strop.filter.judges.checklist_items import FACT, Item, items_of_row
from strop.filter.judges.criteria import SCORED, scores_of
from strop.filter.judges.readers import plain
from strop.filter.judges.rubric import RUBRIC, answer, items_in
from strop.generate.llm_clients.without_model import Rule
from strop.recipes.environment_specs import measured
from strop.recipes.named_parts import named_parts, reward_seconds
from strop.recipes.setting import Setting
from strop.roles import LLMClient, Reward
from strop.run import Run
from strop.standins.judges.criteria import anchored, guarded, scored_by_criteria
from strop.text.llm_prompt import question
from strop.training.advantages.group_relative import GroupStandard
from strop.training.losses.clip import Clip
from strop.training.losses.kl import Kl
from strop.types import Group, Rollout, Task

# Rubicon's reward (2508.12790): rubric dimensions with diminishing returns, and vetoes that set the reward to 0.

WANTED = (
    "Write a rubric for completions to this task: one dimension per line, each with its weight before it, as in 5: It "
    "is short; and after the word veto what makes a completion worthless where it is not met, as in veto: It is polite."
)
HACKING = (
    WANTED + " Add a veto against what only looks good: padding, praise of itself, answers that repeat the question, "
    "and whatever else would raise scores without being of use."
)
_VETO = re.compile(r"[ \t*-]*veto[ \t]*[:.)][ \t]*(\S.*)", re.IGNORECASE)
_PASSED = 0.5  # least score that meets a veto criterion


@dataclass(frozen=True)
class RubricAnchors(Reward):
    """0 if a veto is not met, else sum(w * g(r)) / sum(w), g(r) = (1 - e^(-c r)) / (1 - e^(-c)), r from 0 to 1."""

    task_generator: LLMClient  # the rubric bank, or an LLM that writes rubrics
    judge: LLMClient  # scores a completion in all dimensions
    saturation: float = 2.0  # c: larger values reward high scores less
    weight: float = 1.0
    prompt_rubric: str = WANTED  # how a rubric is asked for, below the task
    prompt_scores: str = SCORED  # how scores are asked for, below task, completion and dimensions

    is_inline: ClassVar[bool] = True  # awaits its LLM clients

    def __post_init__(self) -> None:
        if not 0 < self.saturation < 700:
            raise ConfigurationError(f"RubricAnchors needs a saturation above 0 and below 700, got {self.saturation}")

    async def __call__(self, group: Group) -> list[float]:
        if not group.rollouts:
            return []
        items, vetoes = await self._rubric(group.task)
        return await all_of(self._score(rollout, items, vetoes) for rollout in group.rollouts)

    async def _rubric(self, task: Task) -> tuple[list[Item], list[str]]:
        given = items_of_row(task, RUBRIC, 1.0)  # what the row forbids, by points below zero, is a veto
        if wanted := [item for item in given if item.weight > 0]:
            return wanted, [item.text for item in given if item.weight < 0]
        rubric = await answer(self.task_generator, question(self.prompt_rubric, task=text_of(task)))
        found = [_VETO.fullmatch(line.rstrip()) for line in plain(rubric).splitlines()]
        items = [item for item in items_in(rubric) if item.weight > 0]
        if not items:
            raise unread(self.task_generator, rubric, f"the rubric for task {task.id} has no dimension with a weight:")
        return items, [each.group(1) for each in found if each]

    async def _score(self, rollout: Rollout, items: list[Item], vetoes: list[str]) -> float:
        scores = await scores_of(rollout, [*(item.text for item in items), *vetoes], self.judge, self.prompt_scores)
        met = scores[: len(items)]
        is_vetoed = any(score < _PASSED for score in scores[len(items) :])
        rollout.facts |= {f"{FACT}{place}": score for place, score in enumerate(met)} | {"vetoed": float(is_vetoed)}
        paid = sum(item.weight * self.saturated(score) for item, score in zip(items, met, strict=True))
        return 0.0 if is_vetoed else paid / sum(item.weight for item in items)

    def saturated(self, score: float) -> float:
        """g(score), concave from 0 to 1."""
        return math.expm1(-self.saturation * score) / math.expm1(-self.saturation)


def rubric_anchors(
    setting: Setting = Setting(),
    judge: str = "rules",  # rubric bank and judge (a named part)
    first: int = 20,  # steps of the first stage, before the veto against hacking
    saturation: float = 2.0,  # larger values reward high scores less
    low: float = 0.1,  # least mean reward of a group that is trained on
    high: float = 0.95,  # largest mean reward of a group that is trained on
    kl: float = 0.001,  # weight of the KL penalty to the reference policy
) -> Run:
    """`first` steps come before `steps`; the stages differ only in the rubric."""

    def stage(sizes: Setting, rubric: Rule, prompt: str) -> Run:
        gates = (RewardBand(low, high),)
        run = sizes.run("rubric_anchors", GroupStandard(), (Clip(0.2, 0.2), Kl("k3", kl)), gates=gates)
        truth = measured(run.envs)
        task_generator, scorer = named_parts("judge", judge, setting, rubric, scored_by_criteria)
        run.rewards, run.reward_seconds = (
            (RubricAnchors(task_generator, scorer, saturation, prompt_rubric=prompt), truth),
            reward_seconds(judge),
        )
        return run

    run = stage(setting, guarded, HACKING)
    run.warmup = stage(replace(setting, steps=first), anchored, WANTED)
    return run
