"""RLCF: DPO on pairs ranked by checklists that an LLM writes for each task and judges item by item.

Title: Checklists Are Better Than Reward Models For Aligning Language Models
Paper: arXiv 2507.18624 (2025)
Claim: 4 points on FollowBench, 6 on InFoBench and 3 on Arena-Hard, where reward models do not help everywhere.
Reading: Rules stand in for the LLM client (`judge=http://...#MODEL samples=25` asks a model); they know no answers and
    are deterministic, so one sample is enough where the paper takes 25. The paper verifies items with a judge and with
    programs; here the programs are our rules for two items (calculations hold, the answer is the last result), each
    averaged with the judge's score as the release averages its programs; a model's checklist is judged alone. Pairs are
    the best and the worst of a group, sampled anew each step, where the paper has a fixed set; each batch is trained on
    twice, as its set is. Kept are the 40 % of the pairs that differ most on one item. A judge's answer without a number
    is no score. The environment's own reward is logged with weight 0.
Left out: Programs that a model writes to verify items of its checklist: none is asked for or run.
Acts: reward/checklist > 0 and kept_share < 1 and margin != 0
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Awaitable, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from strop.errors import ConfigurationError, LLMClientError
from strop.filter.gates.best_vs_worst_pair import BestAndWorst
from strop.filter.judges.batch_ask import all_of, judged, judged_or_none, key_of, text_of, transcript, unread
from strop.filter.judges.checklist_items import (
    EVERYWHERE,
    FACT,
    JUDGED,
    SCORE,
    WANTED,
    Item,
    items_in,
    items_of_row,
    widest_gap,
)
from strop.filter.judges.rubric import answer
from strop.generate.llm_clients.without_model import Procedural
from strop.recipes.environment_specs import measured
from strop.recipes.named_parts import named_parts, reward_seconds
from strop.recipes.setting import Setting
from strop.roles import Gate, LLMClient, Reward
from strop.run import Run
from strop.standins.judges.checklist import judged_items, verified_items, written_checklist
from strop.text.llm_prompt import judgement, question
from strop.training.advantages.constant import Constant
from strop.training.losses.preference_pairs import Dpo
from strop.training.reductions.means import SequenceMean
from strop.types import GateResult, Group, Rollout, Sampling, Task

# RLCF's choice of pairs (2507.18624): those that differ most on a single item of their checklist.
#
# Reading: the paper ranks a fixed set of pairs and keeps the first 40 %. Here the policy samples pairs as it learns, so
# each is ranked among the most recent ones, itself included. A group of more than two counts as its widest pair.

_SEEN = 64  # most recent pairs


@dataclass
class WidestGap(Gate):
    """Pairs whose largest difference on one item is in the top `share` of the last 64 pairs; ties are kept."""

    share: float = 0.4  # of the pairs that is kept
    _gaps: deque[float] = field(default_factory=lambda: deque(maxlen=_SEEN), init=False, repr=False, compare=False)

    min_group: ClassVar[int] = 2

    def __post_init__(self) -> None:
        if not 0 < self.share <= 1:
            raise ConfigurationError(f"WidestGap needs a share above 0 and up to 1, got {self.share}")

    def __call__(self, group: Group) -> GateResult:
        gap = widest_gap(group.scored)
        self._gaps.append(gap)
        wider = sum(other > gap for other in self._gaps)
        if wider < self.share * len(self._gaps) - 1e-9:
            return GateResult(group, f"differ by {gap:.2f} on one item")
        return GateResult(None, f"{wider} of the last {len(self._gaps)} pairs differ more on one item")

    def state(self) -> dict[str, Any]:
        return {"gaps": list(self._gaps)}

    def restore(self, state: dict[str, Any]) -> None:
        self._gaps = deque(state["gaps"], maxlen=_SEEN)


# Checklist reward (RLCF, 2507.18624): an LLM client writes requirements for a task's completions and judges each item.
#
# An answer without a number is no score (the release counts it as -1); a verifier that fails is left out.


@dataclass(frozen=True)
class Checklist(Reward):
    """sum(w * s) / (100 * sum(w)) over the items of the task's checklist and one for all tasks, of importance 100.

    s is the mean of the judge's `samples` scores; if the verifier scores the item 0 or 100, the mean of that and the
    judge's mean. An item without a score is left out; a rollout without any has no reward.
    """

    task_generator: LLMClient  # writes checklists
    judge: LLMClient  # scores how well a completion meets an item
    verifier: LLMClient | None = None  # checks some items exactly, and gives no score for others
    samples: int = 25  # answers of the judge per question
    sampling: Sampling = field(default_factory=lambda: Sampling(temperature=1.3, top_p=0.9, max_tokens=256))
    weight: float = 1.0
    prompt_checklist: str = WANTED  # how a checklist is asked for, below the task
    prompt_score: str = JUDGED  # how a score is asked for, below task, completion and requirement

    is_inline: ClassVar[bool] = True  # awaits its LLM clients

    def __post_init__(self) -> None:
        if self.samples < 1:
            raise ConfigurationError(f"Checklist needs samples >= 1, got {self.samples}")

    async def __call__(self, group: Group) -> list[float]:
        if not group.rollouts:
            return []
        items = await self._items(group.task)
        return await all_of(self._rated(rollout, items) for rollout in group.rollouts)

    async def _items(self, task: Task) -> list[Item]:
        """The row's column `checklist`, or what is written, the same for all rollouts."""
        if given := items_of_row(task, "checklist", EVERYWHERE.weight):
            return [*given, EVERYWHERE]
        asked = question(self.prompt_checklist, task=text_of(task))
        said = await answer(self.task_generator, asked)
        if not (items := items_in(said)):
            raise unread(self.task_generator, said, f"the checklist for task {task.id} has no item with an importance:")
        return [*items, EVERYWHERE]

    async def _rated(self, rollout: Rollout, items: Sequence[Item]) -> float:
        scores = await all_of(self._score(rollout, item) for item in items)
        known = [(place, score) for place, score in enumerate(scores) if score is not None]
        rollout.facts |= {f"{FACT}{place}": score / 100 for place, score in known}
        total = sum(items[place].weight for place, _ in known)
        return sum(items[place].weight * score for place, score in known) / (100 * total) if known else math.nan

    async def _score(self, rollout: Rollout, item: Item) -> float | None:
        asked = judgement(
            self.prompt_score, task=text_of(rollout.task), completion=transcript(rollout), requirement=item.text
        )
        known = [score for score in await all_of(self._answers(asked)) if score is not None]
        found = [sum(known) / len(known)] if known else []
        verified = await self._verified(asked)
        found += [] if verified is None else [verified]
        return sum(found) / len(found) if found else None

    def _answers(self, asked: str) -> list[Awaitable[float | None]]:
        return [
            judged_or_none(self.judge, asked, SCORE, self.sampling, key_of(f"{asked}/{number}"))
            for number in range(self.samples)
        ]

    async def _verified(self, asked: str) -> float | None:
        if self.verifier is None:
            return None
        try:
            return await judged(self.verifier, asked, SCORE, Sampling(temperature=0.0))
        except LLMClientError:
            return None


def rlcf(
    setting: Setting = Setting(),
    judge: str = "rules",  # writes and judges checklists (a named part)
    samples: int = 1,  # answers of the judge per question; use 25 with a language model
    share: float = 0.4,  # share of the pairs that is kept: those that differ most on one item
    beta: float = 0.1,  # DPO's beta: scale of the implicit reward log(policy / reference)
) -> Run:
    """No reward model and no reference answers: a checklist of requirements is written first."""
    gates = (BestAndWorst(), WidestGap(share))
    run = setting.run("rlcf", Constant(), (Dpo(beta),), gates=gates, reduction=SequenceMean(), epochs=2)
    task_generator, scorer = named_parts("judge", judge, setting, written_checklist, judged_items)
    verifier = Procedural(verified_items) if judge == "rules" else None  # it knows its own items alone
    truth = measured(run.envs)
    run.rewards, run.reward_seconds = (
        (Checklist(task_generator, scorer, verifier, samples), truth),
        reward_seconds(judge),
    )
    return run
