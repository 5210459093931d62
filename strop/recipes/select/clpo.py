"""CLPO: GRPO with rewritten tasks (hard ones simplified, medium ones reworded) and half the KL penalty on hard tasks.

Title: CLPO: Curriculum Learning meets Policy Optimization for LLM Reasoning
Paper: arXiv 2509.25004 (2025)
Claim: 6.96 points more pass@1 on average over eight benchmarks.
Reading: As released: 4 rollouts, one rewrite of each task with the same answer, simpler up to a pass rate of 0.3 and
    reworded up to 0.7, groups without contrast dropped, half of the KL penalty on hard tasks. The release samples and
    trains rewrites in the batch of their originals; here they follow in the next batches, half of each. A rule stands
    in for the rewriting LLM with the bundled environments, since the bundled model writes no problems:
    generator=itself is the paper's. A rewrite that contains its answer is refused.
Left out: Hard rewrites first where a batch is cut to the number of machines.
Acts: written > 0 and written_share > 0 and hard_share > 0
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

import torch
from torch import Tensor

from strop.control.samplers.uniform import Uniform
from strop.control.samplers.with_generated import WithWritten
from strop.control.task_generators.support.prompts import ask_llm, requests, try_request
from strop.environments.data.heldout_split import prompt_of
from strop.errors import ConfigurationError
from strop.filter.gates.zero_variance import ZeroVariance
from strop.recipes.named_parts import named_generator
from strop.recipes.setting import Setting
from strop.roles import Asks, LLMClient, Loss, TaskGenerator
from strop.run import Run
from strop.stats.task_lineage import child, is_written
from strop.success import successes
from strop.training.advantages.group_relative import GroupStandard
from strop.training.arithmetic.siblings import group_mean
from strop.training.batch import Batch, Output
from strop.training.losses.clip import Clip
from strop.training.requirements import Logprobs, Need
from strop.types import Group, Metrics, Task

if TYPE_CHECKING:
    from strop.roles import Player


# CLPO's rewrites (2509.25004): hard tasks are simplified, medium ones reworded; the answer stays.
#
# The rewriter reads the answer, as in the release, so a rewrite that contains it is refused
# (`control/task_generators/support/validation.py`). A rewrite is not rewritten again, and is sampled in a later batch
# than its parent, where the release has both in one.


@dataclass(frozen=True)
class Reworded(TaskGenerator, Asks):
    """Task generator: one rewrite of each task with a pass rate of at most `medium`; a simpler one up to `hard`."""

    llm_client: LLMClient | None = None  # rewrites; None: the policy itself
    hard: float = 0.3  # pass rate up to which the rewrite is simpler
    medium: float = 0.7  # pass rate up to which the task is reworded; above, no rewrite
    prompts: dict[str, str] = field(
        default_factory=lambda: requests("simpler", "reworded")
    )  # what is asked, by request

    needs_success: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not 0 <= self.hard <= self.medium <= 1:
            raise ConfigurationError(f"Reworded needs 0 <= hard <= medium <= 1, got {self.hard} and {self.medium}")

    async def try_clients(self, task: Task) -> None:
        await try_request(self.llm_client, "simpler", task, prompts=self.prompts)

    async def __call__(self, group: Group, play: Player) -> list[Task]:
        right, count = successes(group)
        if is_written(group.task) or not count or right > self.medium * count:
            return []
        wanted = "simpler" if right <= self.hard * count else "reworded"
        written = await ask_llm(
            self.llm_client, wanted, play, task=prompt_of(group.task), answer=group.task.answer, prompts=self.prompts
        )
        return [child(group.task, written["task"], group.task.answer)]


# CLPO's KL penalty (2509.25004): half as strong on hard tasks, where the policy has to change most.
#
# Reading: the release's estimator is k3, and a task is hard by its group's mean success.

_ROUNDING = 1e-9


@dataclass(frozen=True)
class KlBySuccess(Loss):
    """Loss exp(-d) - 1 + d with d = log(policy / reference); times `relief` where at most `hard` of a group is
    right.
    """

    hard: float = 0.3  # mean success of a group up to which its task is hard
    relief: float = 0.5  # factor of the penalty on hard tasks
    weight: float = 0.001  # of this loss relative to others

    needs: ClassVar[frozenset[Need]] = frozenset({Logprobs("reference")})
    scope: ClassVar[str] = "group"

    needs_success: ClassVar[bool] = True

    def __call__(self, output: Output, batch: Batch) -> tuple[Tensor, Metrics]:
        distance = batch.log_ratio(output.logprobs, batch.logprobs_of("reference"))  # [T]
        is_hard = batch.on_tokens(group_mean(batch.successes, batch) <= self.hard + _ROUNDING)  # [T]
        penalty = torch.expm1(-distance) + distance
        loss = torch.where(batch.trainable, torch.where(is_hard, self.relief, 1.0) * penalty, 0.0)
        return loss, {"reference_kl": batch.metric(distance), "hard_share": batch.metric(is_hard.to(distance.dtype))}


def clpo(
    setting: Setting = Setting(env="arithmetic:5+countdown:3", group_size=4, groups_per_step=16),
    generator: str = "rules",  # rewrites tasks (a named part)
    hard: float = 0.3,  # pass rate up to which the rewrite is simpler
    medium: float = 0.7,  # pass rate up to which the task is reworded; above, no rewrite
    share: float = 0.5,  # largest share of rewrites in a batch
    kl: float = 0.001,  # weight of the KL penalty to the reference
) -> Run:
    """The policy's pass rates decide which tasks are rewritten, and how."""
    run = setting.run("clpo", GroupStandard(), (Clip(0.2, 0.2), KlBySuccess(hard, 0.5, kl)), gates=(ZeroVariance(),))
    run.task_generator = Reworded(named_generator(generator, setting), hard, medium)
    run.sampler = WithWritten(Uniform(run.envs), share)
    return run
