"""OpenWebVoyager: imitation of expert rollouts, then rounds of rejection sampling until an LLM judge reports success.

Title: OpenWebVoyager: Building Multimodal Web Agents via Iterative Real-World Exploration, Feedback and Optimization
Paper: arXiv 2410.19609 (2024)
Claim: An open multimodal web agent grows better with each round of exploring, judging and imitating, over several
    test sets.
Reading: `group_size` is the maximum number of rollouts of a task. Pages are short texts, and the environment itself is
    the expert of the demonstrations. The judge reads the task, the last three pages and the answer; by default a
    rule reads the same and replaces the larger model. A round is a training step that continues from the last weights,
    as released.
Left out: Screenshots, and the accessibility tree that the paper's agent reads with them.
Acts: tries > 1 and kept_share < 1 and reward/success_verdict > 0 and warmup/nll > 0 with warmup_steps=12, steps=1,
    env=pages:1
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from strop.environments.bundled.pages import answered
from strop.errors import ConfigurationError
from strop.filter.gates.successes_only import Successes
from strop.filter.judges.batch_ask import all_of, judged, text_of
from strop.filter.judges.readers import OneWord
from strop.filter.rewards.from_environment import Earned
from strop.recipes.named_parts import named_part, reward_seconds
from strop.recipes.setting import Setting
from strop.recipes.warmup import shown
from strop.roles import Budget, LLMClient, Reward
from strop.run import Run
from strop.standins.judges.outcomes import judged_pages
from strop.success import is_right
from strop.text.llm_prompt import judgement
from strop.training.advantages.constant import Constant
from strop.training.losses.likelihood import Likelihood
from strop.training.reductions.means import SequenceMean
from strop.types import Group, Metrics, Rollout

# OpenWebVoyager's exploration (2410.19609): rollouts of a task one after the other, until one is judged a success.
#
# With a gate that keeps successes, every solved task gives exactly one rollout, so easy tasks weigh as much as hard
# ones.


@dataclass
class UntilSuccess(Budget):
    """One rollout after the other until one has a success of at least `good`; failed and unjudged ones count."""

    most: int = 5  # maximum rollouts of a task
    good: float = 1.0  # success that ends the search

    needs_success: ClassVar[bool] = True

    _tries: list[int] = field(default_factory=list, init=False, repr=False, compare=False)  # since the last step
    _solved: int = field(default=0, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.most < 1:
            raise ConfigurationError(f"UntilSuccess needs most >= 1, got {self.most}")

    def rollouts(self, group: Group) -> int:
        return int(len(group.rollouts) < self.most and not self._is_solved(group))

    def observe(self, group: Group) -> None:
        self._tries.append(len(group.rollouts))
        self._solved += self._is_solved(group)

    def learn(self, groups: Sequence[Group]) -> Metrics:
        """Metrics since the last step: rollouts per task, and the share of tasks without a success."""
        tries, solved = self._tries, self._solved
        self._tries, self._solved = [], 0
        count = max(len(tries), 1)
        return {"tries": sum(tries) / count, "given_up_share": (len(tries) - solved) / count}

    def state(self) -> dict[str, Any]:
        return {"tries": list(self._tries), "solved": self._solved}

    def restore(self, state: dict[str, Any]) -> None:
        self._tries, self._solved = list(state["tries"]), state["solved"]

    def _is_solved(self, group: Group) -> bool:
        return any(is_right(rollout, self.good) for rollout in group.scored)


# OpenWebVoyager's judge (2410.19609): it reads the task, the last pages and the answer.
#
# Reading: a verdict with neither SUCCESS nor NOT SUCCESS is NaN, so the rollout is not trained on; the release counts
# 0. "Not a success" is a failure; the release finds the word SUCCESS in it.

ASKED = (
    "Was the task done? The pages that were seen last stand under other, the answer that was given under completion. "
    "End with SUCCESS or NOT SUCCESS."
)
_WORDS = dict.fromkeys(("not success", "no success", "not a success", "unsuccessful", "failure"), 0.0)
VERDICT = OneWord({**_WORDS, "successful": 1.0, "success": 1.0})  # the form of an answer


@dataclass(frozen=True)
class SuccessVerdict(Reward):
    """The judge's verdict on success; a rollout that does not end with an answer gets 0 without a judge call."""

    judge: LLMClient
    pages: int = 3  # the last pages, in the judge's prompt
    weight: float = 1.0
    prompt: str = ASKED  # what the judge is asked, below task, last pages and answer

    is_inline: ClassVar[bool] = True  # it only waits for its LLM client
    name: ClassVar[str] = "success_verdict"

    def __post_init__(self) -> None:
        if self.pages < 1:
            raise ConfigurationError(f"SuccessVerdict needs pages >= 1, got {self.pages}")

    async def __call__(self, group: Group) -> list[float]:
        return await all_of(self._score(rollout) for rollout in group.rollouts)

    async def _score(self, rollout: Rollout) -> float:
        answer = answered(rollout.completion)
        if not answer:
            return 0.0
        seen = [message.content for turn in rollout.turns for message in turn.told][-self.pages :]
        asked = judgement(self.prompt, task=text_of(rollout.task), other="\n".join(seen), completion=answer)
        return await judged(self.judge, asked, VERDICT)


def openwebvoyager(
    setting: Setting = Setting(env="pages:2", group_size=5),
    judge: str = "rules",  # judge of success (a named part)
    episodes: str = "",  # JSONL file of recorded expert episodes; empty: the environment's demonstrations
    pages: int = 3,  # the last pages, in the judge's prompt
    warmup_steps: int = 20,  # supervised steps on expert rollouts before RL
) -> Run:
    """Maximum likelihood on one success of each task."""
    parts = {"budget": UntilSuccess(setting.group_size), "gates": (Successes(),), "reduction": SequenceMean()}
    run = setting.run("openwebvoyager", Constant(), (Likelihood(),), **parts)
    run.rewards = (
        SuccessVerdict(named_part("judge", judge, setting, judged_pages, ("pages",)), pages),
        Earned(weight=0.0),
    )
    run.reward_seconds = reward_seconds(judge)
    run.warmup = shown(setting, "openwebvoyager", warmup_steps, episodes)
    return run
