"""RLSP: imitation of search demonstrations, then PPO on the outcome plus a separate search-effort reward.

Title: On the Emergence of Thinking in LLMs I: Searching for the Right Intuition
Paper: arXiv 2502.06773 (2025)
Claim: 23 % on MATH-500 (Llama-3.1-8B-Instruct) and 10 % on AIME 2024 (Qwen2.5-32B-Instruct) over the initial
    model; backtracking and verification appear by themselves.
Reading: As released: 1 for a right answer, 0 for a wrong one, -0.5 for none. form=length adds -price / n for a chain of
    thought of n tokens (counted as a fourth of its characters); the release's price of 1000 is for chains of thousands
    of tokens, here 2 is for a few tens. form=judge is 0.8 of the outcome and 0.2 of a judge's grade of effort; a rule
    that counts different calculations stands in for the model, and a failed judge gives no reward where the release
    gives 0.5. The KL penalty of 0.05 is a loss here; trace 0.95. Demonstrations are the environments' own worked
    solutions with backtracking and checks inserted between the steps.
Acts: reward/search_effort < 0 and advantage_within > 0 and warmup/nll > 0 with warmup_steps=2
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from strop.environments.format.think_tags import CLOSE
from strop.errors import ConfigurationError, nearest
from strop.filter.judges.batch_ask import all_of, judged, text_of, transcript
from strop.filter.judges.checklist_items import SCORE
from strop.filter.rewards.graded_answer import GradedAnswer
from strop.filter.rewards.weighted_sum import as_one
from strop.generate.agents.behavior_injection import Injected
from strop.generate.agents.demonstrator import Demonstrate
from strop.recipes.environment_specs import measured
from strop.recipes.named_parts import named_part, reward_seconds
from strop.recipes.setting import Setting
from strop.recipes.warmup import BundledOnly, shown
from strop.roles import LLMClient, Reward
from strop.run import Run
from strop.standins.judges.outcomes import effort
from strop.text.llm_prompt import judgement
from strop.training.advantages.gae import Gae
from strop.training.losses.clip import Clip
from strop.training.losses.kl import Kl
from strop.training.values.critic import Critic
from strop.types import Group, Rollout

# RLSP's reward for search (2502.06773): a judge grades effort and originality, right answer or not.
#
# The release gives 0.5 if its judge fails; here such a rollout has no reward, as with every other judge.

ASKED = (
    "How much effort and originality does the completion show in its search for an answer, from 0 (none) to 100? It "
    "does not matter whether it is right. Answer with the number."
)


@dataclass(frozen=True)
class JudgedEffort(Reward):
    """The judge's grade of each rollout, from 0 to 1; no reward if its answer has no number."""

    judge: LLMClient
    weight: float = 1.0
    prompt: str = ASKED  # what the judge is asked, below task and completion

    is_inline: ClassVar[bool] = True  # awaits its LLM client

    async def __call__(self, group: Group) -> list[float]:
        return await all_of(self._score(rollout) for rollout in group.rollouts)

    async def _score(self, rollout: Rollout) -> float:
        asked = judgement(self.prompt, task=text_of(rollout.task), completion=transcript(rollout))
        return await judged(self.judge, asked, SCORE) / 100


# RLSP's reward for search without a judge (2502.06773): a penalty on short chains of thought that vanishes with length.
#
# It is no bonus per token: doubling n tokens earns price / (2n), with diminishing returns.

_CHARACTERS = 4  # per token, as released


@dataclass(frozen=True)
class SearchEffort(Reward):
    """-price / n, n being a fourth of the characters before the answer and at least `least`."""

    price: float = 1000.0  # as released, for chains of thought of thousands of tokens
    least: float = 1.0  # smallest n in tokens, which bounds the penalty
    weight: float = 1.0

    is_inline: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if self.price < 0 or self.least <= 0:
            raise ConfigurationError(f"SearchEffort needs price >= 0 and least > 0, got {self.price} and {self.least}")

    def __call__(self, group: Group) -> list[float]:
        lengths = [len(_chain_of_thought(rollout.completion)) / _CHARACTERS for rollout in group.rollouts]
        return [-self.price / max(length, self.least) for length in lengths]


def _chain_of_thought(completion: str) -> str:
    """The text before the answer; all of a completion without an answer."""
    before, closed, _ = completion.rpartition(CLOSE)
    return before if closed else completion


_FORMS = ("length", "judge")


def rlsp(
    setting: Setting = Setting(max_tokens=96),
    form: str = "length",  # length or judge: how search is rewarded
    price: float = 2.0,  # form=length: penalty of a chain of thought of one token; 1000 in the release
    judge: str = "rules",  # form=judge: grades effort (a named part)
    share: float = 0.2,  # form=judge: weight of the judge's grade in the reward
    warmup_steps: int = BundledOnly(10),  # supervised warm-up steps before RL
    behaviours: float = 0.3,  # probability of backtracking, and of a check, before each step of a demonstration
    kl: float = 0.05,  # weight of the KL penalty to the reference policy
) -> Run:
    """The outcome and the search are separate rewards, so that each can be used alone."""
    if form not in _FORMS:
        raise ConfigurationError(f"rlsp has no form {form!r}: {nearest(form, _FORMS)}")
    run = setting.run(
        "rlsp", Gae(), (Clip(0.2, 0.2), Kl("k2", kl)), values=Critic(device=setting.device), minibatches=2
    )
    outcome = as_one(run.rewards)
    truth = measured(run.envs)
    weight = 1.0 if form == "length" else 1 - share
    graded = GradedAnswer(outcome, right=1.0, wrong=0.0, missing=-0.5, weight=weight)
    search: Reward = (
        SearchEffort(price) if form == "length" else JudgedEffort(named_part("judge", judge, setting, effort), share)
    )
    run.rewards, run.reward_seconds = (graded, search, truth), reward_seconds(judge)
    if (warmup := shown(setting, "rlsp", warmup_steps)) is not None:
        run.warmup = replace(warmup, agent=Injected(Demonstrate(least=1.0), behaviours, behaviours, setting.seed))
    return run
