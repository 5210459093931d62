"""Socratic-Zero: a teacher LLM writes new questions from failed completions; DPO on pairs of a right and a wrong one.

Title: Socratic-Zero: Bootstrapping Reasoning via Data-Free Agent Co-evolution
Paper: arXiv 2509.24726 (2025)
Claim: From 100 questions an 8B solver gains 20.2 points over other data generation methods, on seven benchmarks.
Reading: 8 rollouts, DPO on right against wrong, 100 seed questions per environment, and questions made from failures;
    the paper works in 5 rounds, here questions follow from every group. The utility that weights its generator's
    training data is here the probability that a failure leads to a question. Its constants were not found in the
    release and are parameters. A rule stands in for the teacher LLM with the bundled environments, and its answers are
    right.
Left out: The generator, a second model that learns to write questions as the teacher does.
Acts: written > 0 and written_share > 0
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from strop.control.samplers.few import Few
from strop.control.samplers.with_generated import WithWritten
from strop.control.task_generators.support.prompts import requests, rewritten, try_request
from strop.errors import ConfigurationError
from strop.filter.gates.best_vs_worst_pair import BestAndWorst
from strop.recipes.named_parts import named_generator
from strop.recipes.setting import Setting
from strop.roles import Asks, LLMClient, TaskGenerator
from strop.run import Run
from strop.success import is_right, successes
from strop.training.advantages.constant import Constant
from strop.training.losses.preference_pairs import Dpo
from strop.training.reductions.means import SequenceMean
from strop.types import Group, Task

if TYPE_CHECKING:
    from strop.roles import Player


# Socratic-Zero's teacher (2509.24726): from a question and a failed completion, a new question about the error.
#
# Its generator, a second model, learns to write questions of utility exp(-(s - target)^2 / (2 width^2)), s the solver's
# pass rate. Reading: the utility is here the probability that a failure leads to a question at all, so questions follow
# from tasks of medium difficulty; there is no second model. The constants were not found and are parameters.


@dataclass(frozen=True)
class FromFailures(TaskGenerator, Asks):
    """Task generator: a new question, with the utility's probability, for each of at most `questions` failures of a
    group.
    """

    llm_client: LLMClient | None = None  # the teacher; None: the policy itself
    questions: int = 1  # largest number per group
    target: float = 0.5  # pass rate of the highest utility
    width: float = 0.2  # standard deviation of the utility around the target
    prompts: dict[str, str] = field(default_factory=lambda: requests("similar", "mended"))  # what is asked, by request

    needs_success: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if self.questions < 1 or not 0 <= self.target <= 1 or self.width <= 0:
            raise ConfigurationError(
                f"FromFailures needs questions >= 1, 0 <= target <= 1 and width > 0, got {self.questions}, "
                f"{self.target} and {self.width}"
            )

    async def try_clients(self, task: Task) -> None:
        await try_request(self.llm_client, "similar", task, ("task", "answer"), prompts=self.prompts)

    async def __call__(self, group: Group, play: Player) -> list[Task]:
        failed = [rollout for rollout in group.own if not is_right(rollout)]
        made = []
        for rollout in failed[: self.questions]:
            if np.random.default_rng(play.another().key).random() < self.utility(group):
                made.append(
                    await rewritten(
                        self.llm_client, "mended", group.task, play, completion=rollout.completion, prompts=self.prompts
                    )
                )
        return made

    def utility(self, group: Group) -> float:
        right, count = successes(group)
        return math.exp(-((right / count - self.target) ** 2) / (2 * self.width**2)) if count else 0.0


def socratic_zero(
    setting: Setting = Setting(env="arithmetic:4+countdown:3"),
    generator: str = "rules",  # the teacher that writes questions (a named part)
    seeds: int = 100,  # seed tasks of each environment
    share: float = 0.5,  # largest share of new questions in a batch
    questions: int = 2,  # largest number per group
    target: float = 0.5,  # pass rate at which every failure leads to a question
    width: float = 0.2,  # standard deviation of that probability around the target
    beta: float = 0.1,  # scale of the implicit reward log(policy / reference)
) -> Run:
    """Failed tasks are asked again with other numbers."""
    run = setting.run("socratic_zero", Constant(), (Dpo(beta),), gates=(BestAndWorst(),), reduction=SequenceMean())
    run.task_generator = FromFailures(named_generator(generator, setting), questions, target, width)
    run.sampler = WithWritten(Few(run.envs, seeds), share)
    return run
