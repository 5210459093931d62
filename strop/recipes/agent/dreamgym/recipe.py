"""DreamGym: GRPO in episodes simulated by an experience model with retrieval, and a curriculum of harder tasks.

Title: Scaling Agent Learning via Experience Synthesis
Paper: arXiv 2511.03773 (2025)
Claim: On WebArena more than 30 % above all baselines; in environments made for RL as good as with real
    ones, with no real step.
Reading: The experience model reads the task, the history and the 3 most similar transitions of a memory, which starts
    with real demonstrations and grows with each training batch. It returns reward 1 for a solved task and 0 before.
    By default (simulator=rules) a rule-based stand-in simulates the bundled store: it invents values and keeps them
    consistent. Tasks whose rewards have a variance of at least 0.1 are rewritten into harder ones; generated tasks are
    at most `share` of the tasks. GRPO. The real environment is evaluated as `unseen` and never trained in.
Left out: Training the experience model, and the later phase in the real environment (train from the checkpoint).
Acts: experiences_new > 0 and task_variance > 0 and written > 0 and reward/outcome > 0
Break: least=1: no task is varied enough to be made harder
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from strop.control.samplers.uniform import Uniform
from strop.control.samplers.with_generated import WithWritten
from strop.control.task_generators.support.prompts import requests, rewritten, try_request
from strop.errors import ConfigurationError
from strop.recipes.agent.dreamgym.environment import Dreamed, Experiences
from strop.recipes.environment_specs import wrap_envs
from strop.recipes.named_parts import named_generator, named_part
from strop.recipes.setting import Setting
from strop.roles import Asks, LLMClient, TaskGenerator
from strop.run import Run
from strop.standins.world_model import dreamt
from strop.training.advantages.group_relative import GroupStandard
from strop.training.losses.clip import Clip
from strop.types import Group, Metrics, Task

if TYPE_CHECKING:
    from strop.roles import Player


# DreamGym's curriculum (2511.03773): tasks that the policy solves sometimes are rewritten into harder ones.


@dataclass(frozen=True)
class FromVaried(TaskGenerator, Asks):
    """Task generator that writes one harder task from each group whose reward variance is at least `least`."""

    llm_client: LLMClient | None = None  # writes the tasks; None: the policy itself
    least: float = 0.1  # least reward variance of a seed task; 0.25 is the maximum for rewards in [0, 1]
    prompts: dict[str, str] = field(default_factory=lambda: requests("harder"))  # what is asked, by request

    def __post_init__(self) -> None:
        if self.least <= 0:
            raise ConfigurationError(f"FromVaried needs least > 0, got {self.least}")

    async def try_clients(self, task: Task) -> None:
        await try_request(self.llm_client, "harder", task, ("task", "answer"), prompts=self.prompts)

    async def __call__(self, group: Group, play: Player) -> list[Task]:
        if variance(group) < self.least:
            return []
        return [await rewritten(self.llm_client, "harder", group.task, play, prompts=self.prompts)]

    def learn(self, groups: Sequence[Group]) -> Metrics:
        """Metric only: the mean reward variance of a group."""
        return {"task_variance": float(np.mean([variance(group) for group in groups]))} if groups else {}


def variance(group: Group) -> float:
    """Population variance of the rewards of the policy's own rollouts; 0 without any."""
    rewards = [rollout.reward for rollout in group.own]
    return float(np.var(rewards)) if rewards else 0.0


def dreamgym(
    setting: Setting = Setting(env="keyvalue:2"),
    simulator: str = "rules",  # experience model (a named part)
    generator: str = "rules",  # writes harder tasks (a named part)
    seeds: int = 16,  # real demonstrations in the initial memory
    top: int = 3,  # similar transitions in the experience model's prompt
    share: float = 0.5,  # largest share of generated tasks
    least: float = 0.1,  # least reward variance of a task that is made harder
    clip: float = 0.2,  # PPO clip range: ratios are clipped to [1 - clip, 1 + clip]
) -> Run:
    """GRPO in simulated episodes; the real environment is for evaluation only."""
    run = setting.run("dreamgym", GroupStandard(), (Clip(clip, clip),))
    real, memory = run.envs, Experiences(top)
    wrap_envs(
        run,
        lambda env: (Dreamed(env, named_part("simulator", simulator, setting, dreamt, ("keyvalue",)), memory, seeds),),
    )
    run.sampler = WithWritten(Uniform(run.envs), share)
    run.task_generator = FromVaried(named_generator(generator, setting), least)
    run.evaluation = replace(run.evaluation, unseen=real)
    return run
