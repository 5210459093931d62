"""WebRL: a curriculum of tasks written from failures, regression of log-ratios onto turn advantages, and replay.

Title: WebRL: Training LLM Web Agents via Self-Evolving Online Curriculum Reinforcement Learning
Paper: arXiv 2411.02337 (2024)
Claim: On WebArena-Lite Llama-3.1-8B goes from 4.8 to 42.4 % and GLM-4-9B from 6.1 to 43 % (GPT-4-Turbo: 17.6 %).
Reading: The paper's loss and per-turn advantage, with one beta. Its release splits beta by the reference's confidence,
    keeps only the sign of the advantage and masks negative ones. Here rollouts have equal weight, and turns within a
    rollout; in the release every turn has. A phase is `phase` versions: the reference is the policy of the previous
    phase. A value model of prompts (`pcl`) decides which generated tasks are sampled, within the paper's band; in the
    paper its critic decides. The environment decides about success, where the paper has a learned outcome model. Past
    successes are replayed by the perplexity at sampling time. Rules of the bundled environments write tasks in place
    of GPT-4o. The supervised first phase is on recorded episodes (`episodes=`), where there are any.
Left out: A judge of whether a task is feasible at all, two heads of the critic.
Acts: written > 0 and written_share > 0 and replayed_share > 0 and moved > 0 and reference_version > 0
    with phase=2, sure=1
Break: low=0 high=0: tasks are written, and none is tried
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import torch
from torch import Tensor

from strop.control.estimators.prompt_value_head import PromptValue
from strop.control.samplers.uniform import Uniform
from strop.control.samplers.with_generated import WithWritten
from strop.control.task_generators.support.prompts import requests, rewritten, try_request
from strop.errors import ConfigurationError
from strop.recipes.named_parts import named_generator
from strop.recipes.setting import Setting
from strop.recipes.warmup import shown
from strop.replay.memory.held_groups import Replaying
from strop.roles import Advantage, Asks, LLMClient, Loss, TaskGenerator
from strop.run import Run
from strop.success import successes
from strop.training.arithmetic.turn_returns import on_written, over_turns, turn_bounds, turn_payments
from strop.training.batch import Batch, Output
from strop.training.reductions.means import EqualTurns
from strop.training.requirements import Logprobs, Need
from strop.training.trainers.moving_reference import MovingReference
from strop.training.trainers.torch import TorchTrainer
from strop.training.values.turn_success import TurnSuccess
from strop.types import Group, Metrics, Rollout, Task

if TYPE_CHECKING:
    from strop.roles import Player


# WebRL's curriculum (2411.02337): unsolved tasks are the seeds of new ones.
#
# `WithWritten(band=...)` selects those within reach by the run's pass-rate estimator.

_WANTED = ("similar", "easier")


@dataclass(frozen=True)
class FromFailed(TaskGenerator, Asks):
    """Task generator that writes `tasks` tasks from each unsolved one: equally hard, or one step easier."""

    llm_client: LLMClient | None = None  # writes the tasks; None: the policy itself
    tasks: int = 2  # new tasks per unsolved task
    prompts: dict[str, str] = field(default_factory=lambda: requests("similar", "easier"))  # what is asked, by request

    needs_success: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if self.tasks < 1:
            raise ConfigurationError(f"FromFailed needs tasks >= 1, got {self.tasks}")

    async def try_clients(self, task: Task) -> None:
        await try_request(self.llm_client, "similar", task, ("task", "answer"), prompts=self.prompts)

    async def __call__(self, group: Group, play: Player) -> list[Task]:
        right, count = successes(group)
        if not count or right > 0:
            return []
        rngs = [np.random.default_rng(play.another().key) for _ in range(self.tasks)]
        wanted = [_WANTED[int(rng.integers(len(_WANTED)))] for rng in rngs]
        return [await rewritten(self.llm_client, each, group.task, play, prompts=self.prompts) for each in wanted]


# WebRL's replay (2411.02337): past successes of medium perplexity, in addition to new groups.
#
# Reading: the perplexity is that of sampling time; the release computes it with the newest policy.

_RIGHT = 0.5  # larger rewards are successes
_KEPT = 1000  # old groups, the last trained ones


@dataclass
class ConfidentSuccesses(Replaying):
    """Buffer of new groups, each trained once, plus up to `most` times as many old ones with their successes.

    Replayed successes have low < exp(mean logprob) <= high: a perplexity of at least 1 / high and below 1 / low.
    """

    low: float = 0.5  # bounds of the geometric mean token probability
    high: float = 0.95
    most: float = 2.0  # old groups per new group
    seed: int = 0  # for the choice of old groups

    def __post_init__(self) -> None:
        if not 0 <= self.low < self.high <= 1 or self.most < 0:
            raise ConfigurationError(
                f"ConfidentSuccesses needs 0 <= low < high <= 1 and most >= 0, got {self.low}, {self.high}, {self.most}"
            )

    def sample(self, count: int, step: int) -> list[Group] | None:
        held = self._held
        if len(held) < count:
            return None
        known = sorted(held.old)
        chosen = np.random.default_rng([self.seed, step]).permutation(len(known))[: int(self.most * count)]
        again = [held.old[known[place]] for place in sorted(chosen.tolist())]
        fresh = held.take(count, again)
        for group in fresh:
            if not self._kept(group):
                del held.old[group.number]
        held.forget(_KEPT)
        return [*fresh, *(replace(group, rollouts=self._kept(group)) for group in again)]

    def _kept(self, group: Group) -> list[Rollout]:
        return [rollout for rollout in group.own if rollout.reward > _RIGHT and self._is_between(rollout)]

    def _is_between(self, rollout: Rollout) -> bool:
        logprobs = np.concatenate([*(turn.logprobs for turn in rollout.turns), np.zeros(0)])
        return len(logprobs) > 0 and self.low < math.exp(float(logprobs.mean())) <= self.high


# WebRL's advantage (2411.02337): one-step TD error and Monte Carlo advantage of a turn, mixed half and half.
#
# Reading: the paper's form; its release adds both, subtracts 0.05, clips at 1 and keeps the sign.


@dataclass(frozen=True)
class TurnProgress(Advantage):
    """A_t = trace * (r_t + V_(t+1) - V_t) + (1 - trace) * (sum of r from t on - V_t); V before a turn's first token."""

    trace: float = 0.5  # 1: one-step TD errors, 0: Monte Carlo returns

    needs_values: ClassVar[bool] = True
    is_local: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not 0 <= self.trace <= 1:
            raise ConfigurationError(f"TurnProgress needs 0 <= trace <= 1, got {self.trace}")

    def __call__(self, groups: Sequence[Group]) -> None:
        for rollout in (rollout for group in groups for rollout in group.scored):
            self._advantage(rollout)

    def _advantage(self, rollout: Rollout) -> None:
        if rollout.values is None or len(rollout.values) != rollout.num_tokens:
            raise ConfigurationError(f"TurnProgress needs a value for each token of rollout {rollout.id}: add a critic")
        first, _ = turn_bounds(rollout)
        values = np.append(rollout.values.astype(np.float64)[first], 0.0)  # [U + 1]
        rewards = np.array(on_written(rollout, turn_payments(rollout)))  # [U]
        later = np.cumsum(rewards[::-1])[::-1]
        advantage = self.trace * (rewards + values[1:] - values[:-1]) + (1 - self.trace) * (later - values[:-1])
        lengths = [len(turn.tokens) for turn in rollout.turns if len(turn.tokens)]
        rollout.advantages = np.repeat(advantage, lengths).astype(np.float32)


# WebRL's loss (2411.02337): beta * log(policy / reference) is regressed onto the advantage.
#
# It is 0 at policy ~ reference * exp(A / beta), whichever policy sampled the rollout, so old successes can be replayed;
# the reference is the policy of the previous phase. An action is a turn, with its own advantage. Reading: the paper's
# square with one beta; log-ratios are means over an action's tokens as in the release, which also weights by the
# reference's confidence and drops negative advantages.


@dataclass(frozen=True)
class AdvantageRegression(Loss):
    """(beta * mean log(policy / reference) - mean A)^2 of a turn, at each of its tokens."""

    beta: float = 1.0  # the optimum is reference * exp(A / beta)
    weight: float = 1.0

    needs: ClassVar[frozenset[Need]] = frozenset({Logprobs("reference")})
    contains_ratio: ClassVar[bool] = True  # off-policy as it stands: a correction would bias it

    def __post_init__(self) -> None:
        if self.beta <= 0:
            raise ConfigurationError(f"AdvantageRegression needs beta > 0, got {self.beta}")

    def __call__(self, output: Output, batch: Batch) -> tuple[Tensor, Metrics]:
        sizes = over_turns(torch.ones_like(output.logprobs), batch).clamp(min=1)  # [T], tokens of a token's turn
        log_ratio = over_turns(batch.log_ratio(output.logprobs, batch.logprobs_of("reference")), batch) / sizes  # [T]
        wanted = over_turns(batch.advantages.to(log_ratio.dtype), batch) / sizes  # [T]
        loss = torch.where(batch.trainable, (self.beta * log_ratio - wanted).square(), 0.0)
        return loss, {"regression_error": batch.metric(loss), "moved": batch.metric(log_ratio.abs())}


def webrl(
    setting: Setting = Setting(env="keyvalue:3+keyvalue:5", group_size=4),
    generator: str = "rules",  # writes tasks (a named part)
    episodes: str = "",  # JSONL file of recorded episodes, whose successes are imitated before RL
    offline: int = 20,  # supervised steps on recorded episodes
    share: float = 0.5,  # largest share of generated tasks
    tasks: int = 2,  # new tasks per unsolved task
    low: float = 0.05,  # least predicted success rate of a sampled generated task
    high: float = 0.75,  # largest predicted success rate of a sampled generated task
    beta: float = 1.0,  # the optimum is reference * exp(advantage / beta)
    trace: float = 0.5,  # weight of the one-step TD error in the advantage; the rest is the Monte Carlo return
    phase: int = 20,  # versions between updates of the reference policy
    again: float = 2.0,  # replayed groups per new group
    unsure: float = 0.5,  # replayed successes have a larger geometric mean token probability
    sure: float = 0.95,  # replayed successes have at most this geometric mean token probability
    value_learning_rate: float = 1e-4,  # learning rate of the critic
) -> Run:
    """Advantage regression with replay, on a curriculum generated from failures."""
    policy, reference = (TorchTrainer(learning_rate=setting.learning_rate, device=setting.device) for _ in range(2))
    run = setting.run(
        "webrl",
        TurnProgress(trace),
        (AdvantageRegression(beta),),
        estimator=PromptValue(device=setting.device),
        values=TurnSuccess(value_learning_rate, device=setting.device),
        buffer=ConfidentSuccesses(unsure, sure, again, setting.seed),
        reduction=EqualTurns(),
        trainer=MovingReference(policy, reference, phase),
    )
    run.task_generator = FromFailed(named_generator(generator, setting), tasks)
    run.sampler = WithWritten(Uniform(run.envs), share, (low, high))
    run.warmup = shown(setting, "webrl", offline, episodes) if episodes else None
    return run
