"""Experiences of steps stand beside every observation, a library of them grows with the policy; advantage step by step.

Title: SLEA-RL: Step-Level Experience Augmented Reinforcement Learning for Multi-Turn Agentic Training
Paper: arXiv 2603.18079 (2026)
Claim: Better than agents trained without a library of experiences on benchmarks of several turns.
Reading: Limits, thresholds and prices are the release's, whose library has three levels of strategies and three of
    warnings. Here are two of each: sequences of actions and single ones, last actions and repetitions. They are taken
    by rules, as the release does without a model; its third levels are sentences about its own environments. What the
    library tells is read in training and in evaluation, and trained behind, as it was sampled. The price of a refused
    action is part of a rollout's reward. Groups are smaller than its 8. The bundled model has never read such text,
    and is right less often beside it: what this recipe shows there is the flow.
Left out: Its distillation from an expert that reads the library; retrieval by embeddings.
Acts: strategies > 0 and credit_within > 0 with start=1
"""

from __future__ import annotations

from dataclasses import replace

from strop.generate.agents.chat import Chat
from strop.generate.memory.store import Library
from strop.generate.strategies.independent import Independent
from strop.recipes.replay.slea_rl.advantage import SameObservation
from strop.recipes.replay.slea_rl.agent import Reminded
from strop.recipes.replay.slea_rl.reward import Refused
from strop.recipes.replay.slea_rl.strategy import Experienced
from strop.recipes.setting import Setting
from strop.run import Run
from strop.training.losses.clip import Clip
from strop.training.losses.kl import Kl


def slea_rl(
    setting: Setting = Setting(env="keyvalue:2", group_size=4),
    golden: int = 2,  # strategies beside an observation
    warnings: int = 1,  # beside an observation
    near: float = 0.85,  # overlap of observations that are one cluster, and of experiences that are one
    longest: int = 80,  # characters of all that stands beside an observation; 800 in the paper
    most_golden: int = 100,  # strategies of each level
    most_warnings: int = 50,  # of each level
    new_golden: int = 10,  # strategies that one step may add
    new_warnings: int = 5,  # that one step may add
    start: int = 5,  # the step that first reads any
    step_weight: float = 1.0,  # of step advantage beside that of the whole rollout
    discount: float = 0.95,  # from turn to turn
    price: float = 0.1,  # of an action that the environment refused
    kl: float = 0.01,  # weight of the distance to the reference
    clip: float = 0.2,  # a token whose ratio left 1 by more gets no gradient
) -> Run:
    """group_size rollouts of each task, every turn of which reads what led to success from where it stands."""
    strategies, pitfalls = Library(most_golden, near), Library(most_warnings, near)
    agent = Reminded(Chat(), strategies, pitfalls, golden, warnings, near, longest)
    run = setting.run(
        "slea_rl",
        SameObservation(step_weight, discount),
        (Clip(clip, clip), Kl(weight=kl)),
        agent=agent,
        strategy=Experienced(Independent(), strategies, pitfalls, new_golden, new_warnings, start=start),
    )
    run.rewards = (*run.rewards, Refused(price))
    return replace(run, evaluation=replace(run.evaluation, agent=agent))
