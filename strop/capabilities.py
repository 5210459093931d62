"""Capabilities of parts: optional protocols checked by `isinstance`, and the traversal of nested parts.

A wrapper keeps the capabilities of the part inside it without forwarding them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, TypeVar, runtime_checkable

from strop.backends import Objective
from strop.types import Group, Message, Metrics, Start, Task

if TYPE_CHECKING:
    from strop.generate.policy import Policy
    from strop.roles import Episode
    from strop.run import Run
    from strop.training.batch import Batch
    from strop.weights.shared_base_weights import Loan

Kind = TypeVar("Kind")


@runtime_checkable
class Remembers(Protocol):
    """Part with state that belongs in a checkpoint, as plain JSON data."""

    def state(self) -> dict[str, Any]: ...
    def restore(self, state: dict[str, Any]) -> None: ...


@runtime_checkable
class Stores(Protocol):
    """Part with state too large for JSON: it saves and restores a folder of its own."""

    def save(self, folder: Path) -> None: ...
    def resume(self, folder: Path) -> None: ...


@runtime_checkable
class Observes(Protocol):
    """Part that is shown every scored group once, kept or not."""

    def observe(self, group: Group) -> None: ...


@runtime_checkable
class Learns(Protocol):
    """Part that learns once per step from the groups of the batch, after advantages and optimizer steps."""

    def learn(self, groups: Sequence[Group]) -> Metrics: ...


@runtime_checkable
class Teaches(Protocol):
    """Part that trains the learners inside it itself; without this, every learner is trained by the run."""

    teaches: ClassVar[bool]


@runtime_checkable
class Meets(Protocol):
    """Part that receives the policy before the first rollout."""

    def meet(self, policy: Policy) -> None: ...


@runtime_checkable
class Keeps(Protocol):
    """Part that keeps a file in the run folder, from the first step to the last and across resumes."""

    def keep_in(self, folder: Path) -> None: ...


@runtime_checkable
class TakesOffers(Protocol):
    """Sampler that accepts tasks generated during the run."""

    def offer(self, task: Task) -> None: ...


@runtime_checkable
class Repeats(Protocol):
    """Sampler that repeats tasks on purpose, possibly several times at once."""

    repeats: ClassVar[bool]


@runtime_checkable
class Refuses(Protocol):
    """Part that lists what it cannot work with in a run."""

    def problems(self, run: Run) -> list[str]: ...


@runtime_checkable
class Closes(Protocol):
    """Part with resources to release."""

    async def close(self) -> None: ...


@runtime_checkable
class Multiplies(Protocol):
    """Part that declares the number format of its model's matrix products."""

    matmul_precision: str


@runtime_checkable
class Typed(Protocol):
    """Part whose weights have one dtype."""

    dtype: str


@runtime_checkable
class OnDevice(Protocol):
    """Part whose tensors are on one device."""

    device: str


@runtime_checkable
class Hurries(Protocol):
    """Engine that can decode only the requests of given keys until they are done."""

    def hurry(self, keys: Sequence[int]) -> None: ...


@runtime_checkable
class CountsTokens(Protocol):
    """Engine or LLM client that counts the tokens it sampled; None where the count is unknown."""

    @property
    def num_generated(self) -> int | None: ...


@runtime_checkable
class TellsStacks(Protocol):
    """Part with processes of its own that can report their stacks."""

    def stacks(self) -> str: ...


@runtime_checkable
class Settles(Protocol):
    """Part that plans its memory after all other parts have allocated theirs."""

    def settle(self) -> None: ...


@runtime_checkable
class Lends(Protocol):
    """Trainer of adapters whose base weights can be read in place; `lend` returns None where they cannot."""

    def lend(self) -> Loan | None: ...


@runtime_checkable
class Borrows(Protocol):
    """Engine or trainer that can read another trainer's weights in place; `borrow` returns whether it will."""

    def borrow(self, shared: Loan | None) -> bool: ...


@runtime_checkable
class Streams(Protocol):
    """Trainer that takes a batch in parts."""

    def accumulate(self, batches: Sequence[Batch], objective: Objective, mass: float = 1.0) -> None: ...
    def finish(self, mass: float = 1.0) -> Metrics: ...


@runtime_checkable
class Weighs(Protocol):
    """Reduction that knows the share of a part of a batch in the whole."""

    def mass(self, groups: Sequence[Group]) -> float: ...


@runtime_checkable
class Demonstrates(Protocol):
    """Episode that knows the correct next completion, for supervised training."""

    def demonstrate(self) -> Message: ...


@runtime_checkable
class Hints(Protocol):
    """Environment that can give the first steps of a task's solution."""

    def hint(self, task: Task, steps: int = 1) -> str: ...


@runtime_checkable
class Relates(Protocol):
    """Environment that can make another task of the same scenario, on the same side of the train/held-out split."""

    def relative(self, task: Task, key: int) -> Task: ...


@runtime_checkable
class ReadsCalls(Protocol):
    """Environment that parses tool calls in completions itself, besides those of added tools."""

    reads_calls: ClassVar[bool]


@runtime_checkable
class Dated(Protocol):
    """Environment that changes during training: the episode depends on the version at which the rollout starts."""

    def at(self, start: Start) -> Episode: ...


@runtime_checkable
class Opens(Protocol):
    """Reward that loads resources before the first rollout's deadline starts."""

    def open_resources(self) -> None: ...


@runtime_checkable
class Sends(Protocol):
    """Part whose contents run in another process: this object only describes them and cannot be called."""

    sends: ClassVar[bool]


@runtime_checkable
class Loads(Protocol):
    """Part with a network that starts from the run's model: a pass-rate estimator, sampler, strategy or agent."""

    def load_model(self, model: Path, seed: int) -> None: ...


# ---- traversal of nested parts


def parts(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Every dataclass within a value with its path, the value itself first."""
    if isinstance(value, tuple | list | dict):
        for name, item in value.items() if isinstance(value, dict) else enumerate(value):
            yield from parts(item, f"{path}.{name}")
    elif is_dataclass(value) and not isinstance(value, type):
        yield path.removeprefix("."), value
        for field in fields(value):
            if field.init:
                yield from parts(getattr(value, field.name), f"{path}.{field.name}")


def inside(value: Any, kind: type[Kind]) -> list[Kind]:
    """All parts of this role or capability within a value, itself first, each once."""
    return list({id(part): part for _, part in parts(value) if plays(part, kind)}.values())


def outermost(value: Any, kind: type[Kind]) -> list[tuple[str, Kind]]:
    """Parts with this role or capability that are not inside another such part, nor inside one that `Sends`."""
    found: list[tuple[str, Kind]] = []
    closed: list[str] = []
    for path, part in parts(value):
        if any(not outer or path.startswith(f"{outer}.") for outer in closed):
            continue
        if plays(part, kind):
            found.append((path, part))
        if plays(part, kind) or isinstance(part, Sends):
            closed.append(path)
    return found


def learners_in(value: Any) -> list[Learns]:
    """All learners within a value, except those inside a part that `Teaches` or `Sends`."""
    found: dict[int, Learns] = {}
    closed: list[str] = []
    for path, part in parts(value):
        if any(not outer or path.startswith(f"{outer}.") for outer in closed):
            continue
        if isinstance(part, Learns):
            found.setdefault(id(part), part)
        if isinstance(part, Teaches | Sends):
            closed.append(path)
    return list(found.values())


def plays(part: Any, kind: type) -> bool:
    """Whether a part has this role as a base class, or this capability."""
    return isinstance(part, kind) if kind.__module__ == __name__ else kind in type(part).__mro__


def generated(engine: Any) -> int | None:
    """Number of sampled tokens, summed over all engines that count them; None where none does."""
    told = [part.num_generated for _, part in outermost(engine, CountsTokens)]
    return sum(count or 0 for count in told) if told else None


def uses_gpu(value: Any) -> bool:
    return any(part.device.startswith("cuda") for part in inside(value, OnDevice))
