"""Configuration of a run: which part plays each role. Recipes are functions that return one; a variant is
`dataclasses.replace`.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from strop.control.admission.bounded_lag import BoundedLag
from strop.control.budgets.fixed import Fixed
from strop.control.estimators.pass_rate_counts import Counts
from strop.evaluation import Evaluation
from strop.filter.rewards.from_environment import Earned
from strop.generate.agents.chat import Chat
from strop.generate.engines.cpu.torch_engine import TorchEngine
from strop.generate.strategies.independent import Independent
from strop.replay.fifo import Fifo
from strop.roles import (
    Admission,
    Advantage,
    Agent,
    Budget,
    Buffer,
    Channel,
    Correction,
    Engine,
    Environment,
    Gate,
    Loss,
    PassRateEstimator,
    Reduction,
    Reward,
    Sampler,
    Strategy,
    TaskGenerator,
    Tracker,
    Trainer,
    ValueModel,
)
from strop.training.reductions.means import TokenMean
from strop.training.trainers.torch import TorchTrainer
from strop.types import FilePath, Sampling
from strop.weights.channels.memory import Memory


@dataclass
class Run:
    """All settings of a run; saved with it as Python."""

    envs: tuple[Environment, ...]  # where tasks come from
    sampler: Sampler  # which task is tried next
    advantage: Advantage  # who gets the advantage
    losses: tuple[Loss, ...]  # what is minimized; they add up

    recipe: str = "custom"  # the name it goes by
    model: FilePath = "pocket"  # a Hugging Face folder, or the bundled model
    seed: int = 0  # of tasks, sampling and every other random choice
    steps: int = 100  # training batches; each makes one weight version
    groups_per_step: int = 8  # groups, not rollouts: a step trains groups_per_step * rollouts per group
    minibatches: int = 1  # optimizer steps per batch
    epochs: int = 1  # how often each batch is trained on
    streams: bool = False  # train on groups as they come; the same gradient, but bits depend on their order
    max_generated_tokens: int = 0  # end after the first step that reaches it; 0: no limit
    warmup: Run | None = None  # a run of its own before this one, which begins with the model it makes

    # generate
    agent: Agent = field(default_factory=Chat)  # how one rollout unfolds
    strategy: Strategy = field(default_factory=Independent)  # which rollouts are made
    engine: Engine = field(default_factory=TorchEngine)  # who produces tokens
    sampling: Sampling = field(default_factory=Sampling)  # how tokens are sampled
    context: int = 512  # most tokens of a rollout, prompts and completions together
    # filter
    rewards: tuple[Reward, ...] = field(default_factory=lambda: (Earned(),))  # how good a rollout was; they add up
    allow_constant_completions: bool = False  # train although rewards pay them like right answers
    gates: tuple[Gate, ...] = ()  # what is worth learning from
    reward_seconds: float = 10.0  # deadline of one reward call
    reward_workers: int = 1  # with more, the order in which sampler and budget learn depends on timing
    max_failed_share: float = 0.5  # of rollouts that fail for the environment's fault, before the run ends
    env_seconds: float = 60.0  # deadline of one answer of an environment
    # control
    estimator: PassRateEstimator = field(default_factory=Counts)  # how likely a task is solved now
    task_generator: TaskGenerator | None = None  # which new tasks follow from a group
    budget: Budget = field(default_factory=Fixed)  # how many rollouts a task may have
    admission: Admission = field(default_factory=BoundedLag)  # how far generation may run ahead
    # replay
    buffer: Buffer = field(default_factory=Fifo)  # what is kept, and sampled again
    # train
    values: ValueModel | None = None  # what was expected
    correction: Correction | None = None  # how much an off-policy token counts
    reduction: Reduction = field(default_factory=TokenMean)  # how tokens add up
    trainer: Trainer = field(default_factory=TorchTrainer)  # how weights move
    channel: Channel = field(default_factory=Memory)  # how weights reach the engines
    # observe
    evaluation: Evaluation = field(default_factory=Evaluation)  # how held-out tasks are measured
    trackers: tuple[Tracker, ...] = ()  # where else metrics go
    checkpoint_every: int = 20  # steps between two checkpoints
    keep_checkpoints: int = 2  # the newest, and beside them the best by held-out accuracy; 0: all
    rescore_every: int = 20  # steps at which some tokens are scored again under their version; 0: never
    stall_seconds: float = 60.0  # without any movement, before it says who waits for whom; 0: never
    threads: int = 1  # bits depend on it, so it is part of the run
