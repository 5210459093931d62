"""Imitate first, then explore: each task is tried until a judge is satisfied, and what satisfied it is imitated.

Title: OpenWebVoyager: Building Multimodal Web Agents via Iterative Real-World Exploration, Feedback and Optimization
Paper: arXiv 2410.19609 (2024)
Claim: An open multimodal web agent grows better with each round of exploring, judging and imitating, over several
    test sets.
Reading: `group_size` is how often a task is tried at most. Pages are short texts, and the expert whose visits are
    imitated first is the site itself. The judge reads the task, the last three pages and the answer; a rule that reads
    them too stands for the larger model. A round is a step, and goes on from the last weights, as released.
Left out: Screenshots, and the tree of elements that is read beside them.
Acts: tries > 1 and kept_share < 1 and reward/success_verdict > 0 and warmup/nll > 0 with taught=12, steps=1,
    env=pages:1
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from strop.environments.bundled.pages import answered
from strop.errors import ConfigurationError
from strop.filter.gates.successes_only import Successes
from strop.filter.judges.batch_ask import all_of, text_of, verdict
from strop.filter.rewards.env_reward import Earned
from strop.recipes.llm_clients import judge_seconds, parse_judge
from strop.recipes.setting import Setting
from strop.recipes.warmup import shown
from strop.roles import Budget, LLMClient, Reward
from strop.run import Run
from strop.success import is_right
from strop.text.llm_prompt import judgement
from strop.training.advantages.constant import Constant
from strop.training.losses.likelihood import Likelihood
from strop.training.reductions.sequence_mean import SequenceMean
from strop.types import Group, Metrics, Rollout

# OpenWebVoyager's exploration (2410.19609): try again until a rollout is judged good, at most so often.
#
# One after the other, so that an easy task costs one rollout; with a gate that keeps what is good, every task that was
# solved gives exactly one rollout, and easy ones weigh as much as hard ones.


@dataclass
class UntilGood(Budget):
    """One rollout, and another as long as none earned `good`; those that failed, or that nobody could judge, count."""

    most: int = 5  # rollouts of a task
    good: float = 1.0  # least reward of a rollout that is the last

    _tries: list[int] = field(default_factory=list, init=False, repr=False, compare=False)  # since the last step
    _solved: int = field(default=0, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.most < 1:
            raise ConfigurationError(f"UntilGood needs most >= 1, got {self.most}")

    def rollouts(self, group: Group) -> int:
        return int(len(group.rollouts) < self.most and not self._is_solved(group))

    def observe(self, group: Group) -> None:
        self._tries.append(len(group.rollouts))
        self._solved += self._is_solved(group)

    def learn(self, groups: Sequence[Group]) -> Metrics:
        """Rollouts of a task, and tasks that were given up, since the last step."""
        tries, solved = self._tries, self._solved
        self._tries, self._solved = [], 0
        count = max(len(tries), 1)
        return {"tries": sum(tries) / count, "given_up_share": (len(tries) - solved) / count}

    def state(self) -> dict[str, Any]:
        return {"tries": list(self._tries), "solved": self._solved}

    def restore(self, state: dict[str, Any]) -> None:
        self._tries, self._solved = list(state["tries"]), state["solved"]

    def _is_solved(self, group: Group) -> bool:
        return any(is_right(rollout.reward, self.good) for rollout in group.scored)


# OpenWebVoyager's judge (2410.19609): it reads the task, the last pages seen and the answer, and says SUCCESS or not.
#
# Reading: an answer with neither word is no verdict, and the rollout then is no evidence, where the release counts 0;
# one that says "not a success" is a failure, where the release finds the word alone.

ASKED = (
    "Was the task done? The pages that were seen last stand under other, the answer that was given under completion. "
    "End with SUCCESS or NOT SUCCESS."
)
_FAILURE = re.compile(r"\b(?:NOT|NO)\b[^.\n]{0,40}\bSUCCESS|\bUNSUCCESS")
_SUCCESS = re.compile(r"\bSUCCESS")
_BARE = re.compile(r"\W{0,9}(?:NOT )?SUCCESS\W{0,9}")


def verdict_in(text: str) -> float:
    """1 or 0; NaN: it does not say."""
    if _FAILURE.search(text):
        return 0.0
    return 1.0 if _SUCCESS.search(text) else math.nan


@dataclass(frozen=True)
class SuccessVerdict(Reward):
    """What the judge says; a rollout that does not end with an answer is 0, and nobody is asked."""

    judge: LLMClient
    pages: int = 3  # that the judge is shown, the last ones
    weight: float = 1.0

    is_inline: ClassVar[bool] = True  # it waits, and its LLM client does the work
    name: ClassVar[str] = "success_verdict"

    def __post_init__(self) -> None:
        if self.pages < 1:
            raise ConfigurationError(f"SuccessVerdict needs pages >= 1, got {self.pages}")

    async def __call__(self, group: Group) -> list[float]:
        return await all_of(self._mark(rollout) for rollout in group.rollouts)

    async def _mark(self, rollout: Rollout) -> float:
        said = answered(rollout.completion)
        if not said:
            return 0.0
        seen = [message.content for turn in rollout.turns for message in turn.told][-self.pages :]
        asked = judgement(ASKED, task=text_of(rollout.task), other="\n".join(seen), completion=said)
        return verdict_in(await verdict(self.judge, asked, _BARE))


def openwebvoyager(
    setting: Setting = Setting(env="pages:2", group_size=5),
    judge: str = "rules",  # who says whether a visit succeeded: rules, itself, a folder, or http://HOST/v1#MODEL
    pages: int = 3,  # that the judge is shown, the last ones
    taught: int = 20,  # steps of supervised training on the expert's visits first
) -> Run:
    """One success of each task, and its likelihood."""
    parts = {"budget": UntilGood(setting.group_size), "gates": (Successes(),), "reduction": SequenceMean()}
    run = setting.run("openwebvoyager", Constant(), (Likelihood(),), **parts)
    run.rewards = (
        SuccessVerdict(parse_judge(judge, "strop.standins.judges.web_success:judged"), pages),
        Earned(weight=0.0),
    )
    run.reward_seconds = judge_seconds(judge)
    run.warmup = shown(setting, "openwebvoyager", taught)
    return run
