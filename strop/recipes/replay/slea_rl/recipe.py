"""SLEA-RL: a growing library of step-level experiences, retrieved at every observation; step-level advantages.

Title: SLEA-RL: Step-Level Experience Augmented Reinforcement Learning for Multi-Turn Agentic Training
Paper: arXiv 2603.18079 (2026)
Claim: Better than agents trained without a library of experiences on benchmarks of several turns.
Reading: Limits, thresholds and penalties are the release's, whose library has three levels of strategies and three of
    warnings. This recipe has two of each: action sequences and single actions; last actions and repetitions. They are
    extracted by rules, as in the release without an LLM; its third levels are sentences about its own environments.
    Experiences are in the prompt in training and in evaluation, and tokens are trained in that context. The penalty
    for a refused action is part of the rollout's reward. Groups are smaller than the paper's 8. The bundled model was
    not trained with such text and solves fewer tasks with it: there the recipe only shows that the mechanism runs.
Left out: Distillation from an expert that reads the library; retrieval by embeddings.
Acts: strategies > 0 and advantage_within > 0 with start=1
"""

from __future__ import annotations

from dataclasses import replace

from strop.generate.agents.chat import Chat
from strop.generate.memory.store import Library
from strop.generate.strategies.independent import Independent
from strop.recipes.replay.slea_rl.advantage import SameObservation
from strop.recipes.replay.slea_rl.agent import ExperienceAgent
from strop.recipes.replay.slea_rl.reward import Refused
from strop.recipes.replay.slea_rl.strategy import ExperienceCollector
from strop.recipes.setting import Setting
from strop.run import Run
from strop.training.losses.clip import Clip
from strop.training.losses.kl import Kl


def slea_rl(
    setting: Setting = Setting(env="keyvalue:2", group_size=4),
    golden: int = 2,  # strategies per observation
    warnings: int = 1,  # warnings per observation
    near: float = 0.85,  # overlap from which observations form one cluster, and experiences are merged
    longest: int = 80,  # characters of experiences per observation; 800 in the paper
    most_golden: int = 100,  # strategies kept per level
    most_warnings: int = 50,  # warnings kept per level
    new_golden: int = 10,  # strategies that one step may add
    new_warnings: int = 5,  # warnings that one step may add
    start: int = 5,  # first step whose rollouts read experiences
    step_weight: float = 1.0,  # weight of the step advantage, relative to the rollout's
    discount: float = 0.95,  # from turn to turn
    price: float = 0.1,  # penalty for an action that the environment refused
    kl: float = 0.01,  # weight of the KL penalty to the reference
    clip: float = 0.2,  # PPO clip range of the importance ratio
) -> Run:
    """group_size rollouts per task; every turn reads experiences of similar observations."""
    strategies, pitfalls = Library(most_golden, near), Library(most_warnings, near)
    agent = ExperienceAgent(Chat(), strategies, pitfalls, golden, warnings, near, longest)
    run = setting.run(
        "slea_rl",
        SameObservation(step_weight, discount),
        (Clip(clip, clip), Kl(weight=kl)),
        agent=agent,
        strategy=ExperienceCollector(Independent(), strategies, pitfalls, new_golden, new_warnings, start=start),
    )
    run.rewards = (*run.rewards, Refused(price))
    return replace(run, evaluation=replace(run.evaluation, agent=agent))
