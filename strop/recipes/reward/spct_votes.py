"""SPCT voting: GRPO rewarded by a judge that scores all rollouts of a task together, several times, shuffled.

Reading: SPCT's inference-time scaling: the scores of `votes` answers at temperature 0.5 are added up, or only those of
    the `kept` answers that a second judge trusts most. The judge is the one that `spct` trains; a rule that checks
    calculations stands in for it and gives the same scores in every order. The environment's own reward is logged with
    weight 0.
Acts: reward/shuffled_votes > 0
Papers: spct
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from strop.environments.judging.listwise import WANTED, question_about
from strop.errors import ConfigurationError
from strop.filter.judges.batch_ask import all_of, form_for, judged_or_none, key_of, text_of
from strop.filter.judges.checklist_items import SCORE
from strop.filter.judges.readers import ScoreRow
from strop.recipes.environment_specs import measured
from strop.recipes.named_parts import named_part, reward_seconds
from strop.recipes.setting import Setting
from strop.roles import LLMClient, Reward
from strop.run import Run
from strop.standins.judges.comparisons import scored_list
from strop.text.llm_prompt import compact, judgement
from strop.training.advantages.group_relative import GroupStandard
from strop.training.losses.clip import Clip
from strop.training.losses.kl import Kl
from strop.types import Group, Sampling

# Summed scores of a judge's several answers, each to another order of the completions (SPCT, 2504.02495).
#
# A second LLM client (meta judge) may rate how far each answer can be trusted; then only the best ones count.

SCORED = f"{WANTED} Answer with one number for each, in their order and in one row, as in 7 3 9"
TRUSTED = "How likely is it that the completion scores these right, from 0 to 100? Answer with the number."
_VOTING = Sampling(temperature=0.5, max_tokens=512)
_EXACT = Sampling(temperature=0.0, max_tokens=16)
_HIGHEST = 10


@dataclass(frozen=True)
class ShuffledVotes(Reward):
    """The mean score of each rollout over all answers that count, from 0 to 1.

    An answer that cannot be parsed does not count; without any valid answer no rollout has a reward.
    """

    judge: LLMClient
    votes: int = 8  # answers of the judge per group
    meta: LLMClient | None = None  # rates how far an answer can be trusted; None: all count
    kept: int = 4  # answers that count if there is a meta judge
    weight: float = 1.0
    prompt: str = SCORED  # what the judge is asked, below the task and the numbered completions
    prompt_meta: str = TRUSTED  # what the meta judge is asked, below the question and its answer

    is_inline: ClassVar[bool] = True  # awaits its LLM clients
    is_relative: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not 1 <= self.kept <= self.votes:
            raise ConfigurationError(f"ShuffledVotes needs 1 <= kept <= votes, got {self.kept} and {self.votes}")

    async def __call__(self, group: Group) -> list[float]:
        completions = [rollout.completion for rollout in group.rollouts]
        found = await all_of(self._vote(text_of(group.task), completions, number) for number in range(self.votes))
        read = [vote for vote in found if vote is not None]
        if self.meta is not None:
            read = sorted(read, key=lambda vote: -vote[0])[: self.kept]
        sums = [sum(scores[place] for _, scores in read) for place in range(len(completions))]
        return [total / (len(read) * _HIGHEST) if read else math.nan for total in sums]

    async def _vote(self, task: str, completions: Sequence[str], number: int) -> tuple[float, list[int]] | None:
        """How far an answer can be trusted, and its scores in the order of the rollouts."""
        order = random.Random(f"{key_of(task)}/{number}").sample(range(len(completions)), len(completions))
        form = form_for(self.judge)
        wanted = WANTED if form is compact else self.prompt  # as it was trained
        asked = question_about(task, [completions[place] for place in order], form, wanted)
        scores = await judged_or_none(
            self.judge, asked, ScoreRow(len(completions)), _VOTING, key_of(f"{asked}/{number}")
        )
        if scores is None:
            return None
        back = [scores[order.index(place)] for place in range(len(completions))]
        return await self._trust(asked, " ".join(map(str, scores))), back

    async def _trust(self, asked: str, answer: str) -> float:
        if self.meta is None:
            return 0.0
        text = judgement(self.prompt_meta, task=asked, completion=answer)
        return await judged_or_none(self.meta, text, SCORE, _EXACT, key_of(text)) or 0.0


def spct_votes(
    setting: Setting = Setting(group_size=4),
    judge: str = "rules",  # scores completions (a named part)
    meta: str = "",  # meta judge that rates answers: a model folder or an address; empty: all count
    votes: int = 4,  # answers of the judge per group; 32 in the paper
    kept: int = 2,  # answers that count if there is a meta judge
    kl: float = 0.01,  # weight of the KL penalty to the reference policy
) -> Run:
    """No reference answers: the judge compares the rollouts of a group."""
    run = setting.run("spct_votes", GroupStandard(), (Clip(0.2, 0.2), Kl("k3", kl)))
    second = named_part("meta", meta, setting, scored_list) if meta else None
    run.rewards = (
        ShuffledVotes(named_part("judge", judge, setting, scored_list), votes, second, kept),
        measured(run.envs),
    )
    run.reward_seconds = max(reward_seconds(judge), reward_seconds(meta or "rules"))
    return run
