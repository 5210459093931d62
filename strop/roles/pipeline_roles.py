"""What can be plugged in: one question per role, asked by `pipeline.py` and answered by one small file per mechanism.

A mechanism is a dataclass that names its role as its base and whose fields are its hyperparameters. *Facts* about it
stand in the role with a default; abilities that only some parts have are in `abilities.py`. A part that wraps another
one forwards neither: whoever asks looks through wrappers (`abilities.inside`). Who computes is in `machines.py`.
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
    from strop.types import FloatArray, GateResult, Group, Message, Metrics, Observation, Rollout, Sampling, Start, Task

# ---- generate


class Episode(Protocol):
    """What does the environment answer? One per rollout; an exception is the environment's fault and fails the
    rollout.
    """

    async def reset(self, task: Task) -> None: ...
    async def step(self, completion: Message) -> Observation: ...
    async def close(self) -> None:
        return None


class Environment(Protocol):
    """Where do tasks come from? Seeded; train and held-out tasks never meet."""

    if TYPE_CHECKING:

        @property
        def name(self) -> str: ...
        @property
        def level(self) -> int: ...

    @fact
    def is_inline(self) -> bool:
        return False  # or its check is ours, pure and quick; any other needs a process that can be killed

    @fact
    def pays(self) -> bool:
        return True  # its episode judges completions itself; if not, a reward has to ask `check`

    def task(self, index: int, heldout: bool = False) -> Task: ...
    def episode(self) -> Episode: ...
    def check(self, task: Task, completion: str) -> float: ...  # how right a final completion is, from 0 to 1
    def answer(self, completion: str) -> str:
        return (
            completion.strip()
        )  # what a final completion gives, in one spelling; empty: none. Equal ones are equally right

    def num_tasks(self, heldout: bool = False) -> int | None:
        return None  # how many different ones there are; None: endless


class Agent(Protocol):
    """How does one rollout unfold?"""

    origin: ClassVar[Origin] = Origin.POLICY

    async def rollout(self, task: Task, dialogue: Dialogue, episode: Episode) -> tuple[float, ...]: ...

    # talks until it ends; returns what the environment paid for each turn (empty where it does not pay)


class Strategy(Protocol):
    """Which rollouts are made? `group` holds earlier waves, scored.

    Every sampled token is written in exactly one rollout: what a branch shares with its parent is given to it
    (`pieces.num_prefix`), and advantage along a tree is an advantage's work.
    """

    async def __call__(self, group: Group, starts: Sequence[Start], play: Player) -> list[Rollout]: ...


class LLMClient(Protocol):
    """Who else can be asked? What fails raises `LLMClientError` and is never a reward."""

    async def ask(self, messages: Sequence[Message], sampling: Sampling, key: int) -> str: ...


# ---- filter


class Reward(Protocol):
    """How good was each rollout? One score each, perhaps with places; NaN: none. A coroutine is awaited in time."""

    is_relative: ClassVar[bool] = False  # compares siblings: asked about a whole group or not at all
    pays_blindly: ClassVar[bool] = False  # whatever a completion says, on purpose: a negative control

    @fact
    def is_inline(self) -> bool:
        return False  # or it is ours, pure and quick, and needs no process that can be killed

    @fact
    def name(self) -> str:
        return ""  # under which its scores are kept; empty: after its class

    @fact
    def weight(self) -> float:
        return 1.0

    def __call__(self, group: Group) -> Sequence[float | Paid] | Awaitable[Sequence[float | Paid]]: ...


class Gate(Protocol):
    """What is worth learning from?"""

    min_group: ClassVar[int] = 1  # siblings it needs to compare

    def __call__(self, group: Group) -> GateResult: ...


# ---- control


class PassRateEstimator(Protocol):
    """How likely is a task solved now? One for the whole run, shown every scored group once, in any order."""

    def predict(self, tasks: Sequence[Task], step: int) -> tuple[FloatArray, FloatArray]: ...
    def observe(self, group: Group) -> None: ...  # and predict: mean and variance [N], of tasks never seen too


class Sampler(Protocol):
    """What should be tried next?"""

    def next(self, step: int, estimator: PassRateEstimator) -> Task: ...


class TaskGenerator(Protocol):
    """Which new tasks follow from this group? Those that do not leak go to the sampler."""

    async def __call__(self, group: Group, play: Player) -> list[Task]: ...


class Budget(Protocol):
    """How much may it spend? Asked before the first rollout and after each scored wave, until it says 0."""

    @fact
    def size(self) -> int | None:
        return None  # rollouts of a group, where that is known beforehand

    def rollouts(self, group: Group) -> int: ...
    def turns(self, group: Group) -> int:
        return 0  # most of each rollout; 0: no limit

    def tokens(self, group: Group) -> int:
        return 0  # most that each rollout writes; 0: no limit


class Admission(Protocol):
    """How far may generation run ahead?"""

    @fact
    def lag(self) -> int:
        return 0  # most versions between the weights that sampled a token and those it trains

    @fact
    def is_waved(self) -> bool:
        return False  # all that is started belongs to the next step: groups may be trained as they come

    @fact
    def is_ordered(self) -> bool:
        return self.is_waved  # weights stand still while rollouts are made: all that learns does so in order

    def may_start(self, running: int, waiting: int, step: int, groups_per_step: int, tokens: int = 0) -> bool: ...
    # groups in flight; kept with their step not published; the current version; tokens made since the last step
    def batch_size(self, standing: Standing) -> int: ...  # groups that the next step trains on now; 0: wait


# ---- replay


@runtime_checkable
class Buffer(Protocol):
    """What is kept, and drawn again?"""

    @fact
    def capacity(self) -> int | None:
        return None  # most groups it holds; None: no limit

    def add(self, group: Group) -> None: ...
    def sample(self, count: int, step: int) -> list[Group] | None: ...  # None: too few are there
    def __len__(self) -> int: ...
    def state(self) -> dict[str, Any]: ...
    def restore(self, state: dict[str, Any], group_of: Callable[[int], Group]) -> None: ...  # groups by number


# ---- train


class Advantage(Protocol):
    """Who gets the advantage? Sees the whole batch and fills `advantages` (and `returns` where a critic learns)."""

    min_group: ClassVar[int] = 1  # siblings it needs to compare
    is_local: ClassVar[bool] = False  # advantage for a group depends on nothing outside it: groups train as they come
    needs_values: ClassVar[bool] = False

    @fact
    def needs(self) -> frozenset[PolicyStatistic]:
        return frozenset()  # what it wants to know of the policy: policy statistics (see `Trainer.policy_statistic`)

    def __call__(self, groups: Sequence[Group]) -> None: ...


class ValueModel(Protocol):
    """What was expected? Fills `values` before advantage is given and learns from `returns` after."""

    @fact
    def needs(self) -> frozenset[PolicyStatistic]:
        return frozenset()  # policy statistics, as for an advantage

    def open(self, model: Path, seed: int) -> None: ...
    def predict(self, groups: Sequence[Group]) -> None: ...
    def learn(self, groups: Sequence[Group]) -> Metrics: ...


class Correction(Protocol):
    """How much does an off-policy token count? Detached weights [T] that multiply the losses."""

    @fact
    def target(self) -> str:
        return "current"  # weights reach from the policy that sampled to this one, or to one that an `anchor` names

    @fact
    def needs(self) -> frozenset[Need]:
        return frozenset()

    def __call__(self, logprobs: Tensor, batch: Batch) -> Tensor: ...


class Loss(Protocol):
    """What is minimized? [T], with metrics that are sums over the batch of `share * something`."""

    scope: ClassVar[str] = "rollout"  # the smallest unit a micro-batch may not split: rollout or group
    min_group: ClassVar[int] = 1
    covers: ClassVar[str] = "written"  # or observed: what the environment said, and nothing else
    is_on_policy: ClassVar[bool] = False  # tokens of other weights bias it, unless a correction weighs them
    corrects: ClassVar[bool] = False  # weighs by the sampling distribution, which truncation would change
    needs_distance: ClassVar[bool] = False  # as long as the policy is the one that sampled, a plain policy gradient

    @fact
    def contains_ratio(self) -> bool:
        return False  # to the policy that sampled: a correction on top would count it twice

    @fact
    def anchor(self) -> str:
        return "current"  # where its own ratio begins; a correction must reach exactly that far

    @fact
    def needs(self) -> frozenset[Need]:
        return frozenset()  # batch fields that are filled first (see `Trainer.annotate`)

    @fact
    def weight(self) -> float:
        return 1.0

    def __call__(self, output: Output, batch: Batch) -> tuple[Tensor, Metrics]: ...


class StepScale(Protocol):
    """How far may this step go? A factor, from log(policy / behaviour) of every whole rollout of the step: [N]."""

    def __call__(self, log_weights: Tensor) -> float: ...


class Reduction(Protocol):
    """How do tokens add up? A weight of each written token, by rollout id: [N]; the loss of a step is their sum."""

    def __call__(self, groups: Sequence[Group]) -> dict[str, FloatArray]: ...
