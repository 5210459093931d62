"""A run: which part plays each role. Recipes are functions that return one; a variant is `dataclasses.replace`."""

from __future__ import annotations

from dataclasses import dataclass, field

from strop.control.budgets.fixed import Fixed
from strop.control.paces.bounded_lag import BoundedLag
from strop.evaluation import Evaluation
from strop.filter.rewards.outcome import Outcome
from strop.generate.agents.chat import Chat
from strop.generate.engines.torch import TorchEngine
from strop.generate.strategies.independent import Independent
from strop.observe.trackers import Tracker
from strop.replay.fifo import Fifo
from strop.roles import (
    Advantage,
    Agent,
    Budget,
    Buffer,
    Channel,
    Correction,
    Engine,
    Gate,
    Loss,
    Pace,
    Reduction,
    Reward,
    Sampler,
    Strategy,
    Trainer,
    ValueModel,
    World,
)
from strop.train.reductions.token_mean import TokenMean
from strop.train.trainers.torch import TorchTrainer
from strop.types import Sampling
from strop.weights.channels.memory import Memory


@dataclass
class Run:
    """Everything that decides what a run does; saved with it as Python."""

    worlds: tuple[World, ...]
    sampler: Sampler
    advantage: Advantage
    losses: tuple[Loss, ...]

    recipe: str = "custom"  # the name it goes by
    model: str = "pocket"  # a Hugging Face folder, or the bundled model
    seed: int = 0
    steps: int = 100  # optimizer draws; each makes one weight version
    groups_per_step: int = 8  # groups, not attempts: a step trains groups_per_step * attempts per group
    minibatches: int = 1  # optimizer steps per draw
    epochs: int = 1
    streams: bool = False  # train on groups as they come; the same gradient, but bits depend on their order
    max_generated_tokens: int = 0  # end after the first step that reaches it; 0: no limit
    warmup: Run | None = None  # a run of its own before this one, which begins with the model it makes

    # generate
    agent: Agent = field(default_factory=Chat)
    strategy: Strategy = field(default_factory=Independent)
    engine: Engine = field(default_factory=TorchEngine)
    sampling: Sampling = field(default_factory=Sampling)
    context: int = 512  # most tokens of an attempt, prompts and replies together
    # filter
    rewards: tuple[Reward, ...] = field(default_factory=lambda: (Outcome(),))
    gates: tuple[Gate, ...] = ()
    reward_seconds: float = 10.0  # deadline of one reward call
    reward_workers: int = 1  # with more, the order in which sampler and budget learn depends on timing
    max_failed_share: float = 0.5
    world_seconds: float = 60.0  # deadline of one answer of a world
    # control
    budget: Budget = field(default_factory=Fixed)
    pace: Pace = field(default_factory=BoundedLag)
    # replay
    buffer: Buffer = field(default_factory=Fifo)
    # train
    values: ValueModel | None = None
    correction: Correction | None = None
    reduction: Reduction = field(default_factory=TokenMean)
    trainer: Trainer = field(default_factory=TorchTrainer)
    channel: Channel = field(default_factory=Memory)
    # observe
    evaluation: Evaluation = field(default_factory=Evaluation)
    trackers: tuple[Tracker, ...] = ()
    checkpoint_every: int = 20
    rescore_every: int = 20  # steps at which some tokens are scored again under their version; 0: never
    stall_seconds: float = 60.0  # without any movement, before it says who waits for whom; 0: never
    threads: int = 1  # bits depend on it, so it is part of the run
