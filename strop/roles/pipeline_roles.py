"""Roles of the pipeline: one Protocol per pluggable part; `pipeline.py` calls them, mechanisms implement them.

A mechanism is a dataclass that names its role as its base and whose fields are its hyperparameters. *Facts* about it
are in the role with a default; capabilities that only some parts have are in `capabilities.py`. A wrapper forwards
neither: they are looked up through wrappers (`capabilities.inside`). Engines and trainers are in `compute.py`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, runtime_checkable

from strop.backends import fact
from strop.types import Origin

if TYPE_CHECKING:
    from torch import Tensor

    from strop.control.admission.support.admission_state import Standing
    from strop.filter.paid_text import Paid
    from strop.roles.rollout_interfaces import Dialogue, Player
    from strop.training.batch import Batch, Output
    from strop.training.requirements import Need, PolicyStatistic
    from strop.types import (
        FloatArray,
        GateResult,
        Group,
        Message,
        Metrics,
        Observation,
        Rollout,
        Sampling,
        ScoreRange,
        Start,
        Task,
    )

# ---- generate


class Episode(Protocol):
    """One episode of an environment, for one rollout; an exception is the environment's fault and fails the rollout."""

    async def reset(self, task: Task) -> None: ...
    async def step(self, completion: Message) -> Observation: ...
    async def close(self) -> None:
        return None


class Environment(Protocol):
    """Source of tasks and of their episodes. Seeded; train and held-out tasks are disjoint."""

    if TYPE_CHECKING:

        @property
        def name(self) -> str: ...
        @property
        def level(self) -> int: ...

    @fact
    def is_inline(self) -> bool:
        return False  # True: its check is part of strop, pure and fast; any other runs in a process that can be killed

    @fact
    def pays(self) -> bool:
        return True  # its episode scores completions itself; if not, a reward has to call `check`

    def task(self, index: int, heldout: bool = False) -> Task: ...
    def episode(self) -> Episode: ...
    def check(self, task: Task, completion: str) -> float: ...  # score of a final completion, from 0 to 1
    def answer(self, completion: str) -> str:
        return completion.strip()  # normalized answer of a final completion; empty: none. Equal ones score equally

    def num_tasks(self, heldout: bool = False) -> int | None:
        return None  # number of different tasks; None: endless


class Agent(Protocol):
    """Control flow of one rollout: turns, tools, sub-agents, end."""

    origin: ClassVar[Origin] = Origin.POLICY

    async def rollout(self, task: Task, dialogue: Dialogue, episode: Episode) -> tuple[float, ...]: ...

    # plays the rollout to its end; returns the environment's reward for each turn (empty where there is none)


class Strategy(Protocol):
    """Rollouts of a group: independent samples, or branches of earlier ones. `group` holds earlier waves, scored.

    Every sampled token belongs to exactly one rollout: a branch receives what it shares with its parent as a prefix
    (`pieces.num_prefix`), and the advantage of shared tokens is left to an advantage
    (`training/advantages/along_tree.py`).
    """

    async def __call__(self, group: Group, starts: Sequence[Start], play: Player) -> list[Rollout]: ...


class LLMClient(Protocol):
    """Client of another LLM: judge, teacher, simulator. Failures raise `LLMClientError` and are never a reward."""

    async def ask(self, messages: Sequence[Message], sampling: Sampling, key: int) -> str: ...


# ---- filter


class Reward(Protocol):
    """Reward function of a group: one score per rollout, perhaps with positions; NaN: none. May be a coroutine."""

    is_relative: ClassVar[bool] = False  # compares rollouts of a group: called with a whole group or not at all
    pays_blindly: ClassVar[bool] = False  # independent of completions, on purpose: a negative control

    @fact
    def is_inline(self) -> bool:
        return False  # True: it is part of strop, pure and fast, and needs no process that can be killed

    @fact
    def name(self) -> str:
        return ""  # name of its scores; empty: that of its class

    @fact
    def weight(self) -> float:
        return 1.0

    @fact
    def grades(self) -> ScoreRange | None:
        return None  # range of its scores, where they say how right a rollout is; None: form, length, progress

    def __call__(self, group: Group) -> Sequence[float | Paid] | Awaitable[Sequence[float | Paid]]: ...


class Gate(Protocol):
    """Filter of groups: which ones are worth training on."""

    min_group: ClassVar[int] = 1  # rollouts of a group it needs to compare

    def __call__(self, group: Group) -> GateResult: ...


# ---- control


class PassRateEstimator(Protocol):
    """Estimator of tasks' current pass rates. One for the whole run, given every scored group once, in any order."""

    def predict(self, tasks: Sequence[Task], step: int) -> tuple[FloatArray, FloatArray]: ...
    def observe(self, group: Group) -> None: ...  # and predict: mean and variance [N], of tasks never seen too


class Sampler(Protocol):
    """Curriculum: chooses the next task."""

    def next(self, step: int, estimator: PassRateEstimator) -> Task: ...


class TaskGenerator(Protocol):
    """Generator of new tasks from a group. Those that do not leak go to the sampler."""

    async def __call__(self, group: Group, play: Player) -> list[Task]: ...


class Budget(Protocol):
    """Number of rollouts of a group, and their limits. Asked first and after each scored wave, until it returns 0."""

    @fact
    def size(self) -> int | None:
        return None  # rollouts of a group, where known in advance

    def rollouts(self, group: Group) -> int: ...
    def turns(self, group: Group) -> int:
        return 0  # maximum per rollout; 0: no limit

    def tokens(self, group: Group) -> int:
        return 0  # maximum sampled tokens per rollout; 0: no limit


class Admission(Protocol):
    """Bound on how far generation runs ahead of training (staleness)."""

    @fact
    def lag(self) -> int:
        return 0  # maximum versions between the weights that sampled a token and those it trains

    @fact
    def is_waved(self) -> bool:
        return False  # all started groups belong to the next step: they may be trained as they arrive

    @fact
    def is_ordered(self) -> bool:
        return self.is_waved  # weights are fixed while rollouts are sampled: all parts that learn do so in order

    def may_start(self, running: int, waiting: int, step: int, groups_per_step: int, tokens: int = 0) -> bool: ...
    # groups in flight; kept groups whose step is not published; the version; tokens sampled since the last step
    def batch_size(self, standing: Standing) -> int: ...  # groups that the next step trains on now; 0: wait


# ---- replay


@runtime_checkable
class Buffer(Protocol):
    """Replay buffer of groups: what is kept, and what is sampled for a step."""

    @fact
    def capacity(self) -> int | None:
        return None  # maximum number of groups; None: no limit

    def add(self, group: Group) -> None: ...
    def sample(self, count: int, step: int) -> list[Group] | None: ...  # None: too few
    def __len__(self) -> int: ...
    def state(self) -> dict[str, Any]: ...
    def restore(self, state: dict[str, Any], group_of: Callable[[int], Group]) -> None: ...  # groups by number


# ---- train


class Advantage(Protocol):
    """Advantage estimator. Sees the whole batch and fills `advantages` (and `returns` where a critic learns)."""

    min_group: ClassVar[int] = 1  # rollouts of a group it needs to compare
    is_local: ClassVar[bool] = False  # a group's advantages depend on nothing outside it: groups train as they arrive
    needs_values: ClassVar[bool] = False

    @fact
    def needs(self) -> frozenset[PolicyStatistic]:
        return frozenset()  # policy statistics that it needs (see `Trainer.policy_statistic`)

    def __call__(self, groups: Sequence[Group]) -> None: ...


class ValueModel(Protocol):
    """Value model (critic). Fills `values` before advantages are computed and learns from `returns` after."""

    @fact
    def needs(self) -> frozenset[PolicyStatistic]:
        return frozenset()  # policy statistics, as for an advantage

    def open(self, model: Path, seed: int) -> None: ...
    def predict(self, groups: Sequence[Group]) -> None: ...
    def learn(self, groups: Sequence[Group]) -> Metrics: ...


class Correction(Protocol):
    """Off-policy correction: detached weights [T] that multiply the losses."""

    @fact
    def target(self) -> str:
        return "current"  # weights lead from the sampling policy to this one, or to one that an `anchor` names

    @fact
    def needs(self) -> frozenset[Need]:
        return frozenset()

    def __call__(self, logprobs: Tensor, batch: Batch) -> Tensor: ...


class Loss(Protocol):
    """Loss per token [T], with metrics that are sums over the batch of `share * something`."""

    scope: ClassVar[str] = "rollout"  # the smallest unit a micro-batch may not split: rollout or group
    min_group: ClassVar[int] = 1
    covers: ClassVar[str] = "written"  # completion tokens; or observed: only tokens of the environment
    is_on_policy: ClassVar[bool] = False  # off-policy tokens bias it, unless a correction weighs them
    corrects: ClassVar[bool] = False  # weighs by the sampling distribution, which truncation would change
    needs_distance: ClassVar[bool] = False  # where all ratios are one, it is a plain policy gradient

    @fact
    def contains_ratio(self) -> bool:
        return False  # to the sampling policy: a correction on top would count it twice

    @fact
    def anchor(self) -> str:
        return "current"  # policy of its own ratio's denominator; a correction must lead exactly there

    @fact
    def needs(self) -> frozenset[Need]:
        return frozenset()  # batch fields that are filled first (see `Trainer.annotate`)

    @fact
    def weight(self) -> float:
        return 1.0

    def __call__(self, output: Output, batch: Batch) -> tuple[Tensor, Metrics]: ...


class StepScale(Protocol):
    """Factor on the learning rate of one step, from log(policy / behaviour) of every whole rollout of the step: [N]."""

    def __call__(self, log_weights: Tensor) -> float: ...


class Reduction(Protocol):
    """Weight of each completion token, by rollout id: [N]; the loss of a step is the weighted sum of token losses."""

    def __call__(self, groups: Sequence[Group]) -> dict[str, FloatArray]: ...
