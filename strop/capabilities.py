"""What only some parts can do: protocols that are asked for by `isinstance`, and how to look through wrappers.

A part inside another one keeps its abilities and facts: nothing has to be forwarded, so nothing can be forgotten.
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
    """Its memory belongs in a checkpoint; the state is plain JSON data."""

    def state(self) -> dict[str, Any]: ...
    def restore(self, state: dict[str, Any]) -> None: ...


@runtime_checkable
class Stores(Protocol):
    """Too large for JSON: it writes and reads a folder of its own."""

    def save(self, folder: Path) -> None: ...
    def resume(self, folder: Path) -> None: ...


@runtime_checkable
class Observes(Protocol):
    """Shown every scored group once, kept or not."""

    def observe(self, group: Group) -> None: ...


@runtime_checkable
class Learns(Protocol):
    """Taught once per step with the groups of the batch, after advantage was given and weights moved."""

    def learn(self, groups: Sequence[Group]) -> Metrics: ...


@runtime_checkable
class Teaches(Protocol):
    """Lets what it holds learn itself, from other groups or at another time; anything else learns by itself."""

    teaches: ClassVar[bool]


@runtime_checkable
class Meets(Protocol):
    """Is introduced to the policy before the first rollout."""

    def meet(self, policy: Policy) -> None: ...


@runtime_checkable
class Keeps(Protocol):
    """Keeps a file of its own in the run's folder, from the first step to the last and through every resume."""

    def keep_in(self, folder: Path) -> None: ...


@runtime_checkable
class TakesOffers(Protocol):
    """A sampler that takes tasks which were written during the run."""

    def offer(self, task: Task) -> None: ...


@runtime_checkable
class Repeats(Protocol):
    """A sampler that tries a task again on purpose, perhaps several times at once."""

    repeats: ClassVar[bool]


@runtime_checkable
class Refuses(Protocol):
    """Says what of a run it cannot work with."""

    def problems(self, run: Run) -> list[str]: ...


@runtime_checkable
class Closes(Protocol):
    """Holds more than memory."""

    async def close(self) -> None: ...


@runtime_checkable
class Multiplies(Protocol):
    """Says what kind of numbers its model's layers multiply."""

    products: str


@runtime_checkable
class Typed(Protocol):
    """Holds weights in one type."""

    dtype: str


@runtime_checkable
class OnDevice(Protocol):
    """Holds tensors on one device."""

    device: str


@runtime_checkable
class Hurries(Protocol):
    """An engine that can decode the requests of these keys alone until they are done."""

    def hurry(self, keys: Sequence[int]) -> None: ...


@runtime_checkable
class CountsTokens(Protocol):
    """Says how many tokens it sampled, as far as it knows: an engine, or an LLM client that asks a model."""

    @property
    def num_generated(self) -> int | None: ...


@runtime_checkable
class TellsStacks(Protocol):
    """Has processes of its own and can say what they are doing."""

    def stacks(self) -> str: ...


@runtime_checkable
class Settles(Protocol):
    """Plans its memory after all other parts have allocated theirs."""

    def settle(self) -> None: ...


@runtime_checkable
class Lends(Protocol):
    """A trainer whose weights may be read in place, for only adapters beside them learn; None where that cannot be."""

    def lend(self) -> Loan | None: ...


@runtime_checkable
class Borrows(Protocol):
    """Can read a trainer's weights in place, an engine or another trainer; answers whether it will, once opened."""

    def borrow(self, lent: Loan | None) -> bool: ...


@runtime_checkable
class Streams(Protocol):
    """A trainer that takes a batch in parts."""

    def accumulate(self, batches: Sequence[Batch], objective: Objective, mass: float = 1.0) -> None: ...
    def finish(self, mass: float = 1.0) -> Metrics: ...


@runtime_checkable
class Weighs(Protocol):
    """A reduction that says what a part of a batch weighs in the whole."""

    def mass(self, groups: Sequence[Group]) -> float: ...


@runtime_checkable
class Demonstrates(Protocol):
    """An episode that also knows the right next completion, for supervised training."""

    def demonstrate(self) -> Message: ...


@runtime_checkable
class Hints(Protocol):
    """An environment that can say how the working of a task begins."""

    def hint(self, task: Task, steps: int = 1) -> str: ...


@runtime_checkable
class Relates(Protocol):
    """An environment that can make another task of the same scenario, on the same side of the split."""

    def relative(self, task: Task, key: int) -> Task: ...


@runtime_checkable
class ReadsCalls(Protocol):
    """An environment that finds calls in completions by itself, beside those of tools that somebody else put there."""

    reads_calls: ClassVar[bool]


@runtime_checkable
class Dated(Protocol):
    """An environment that changes while the policy learns: what a rollout finds depends on where it starts."""

    def at(self, start: Start) -> Episode: ...


@runtime_checkable
class Opens(Protocol):
    """A reward that loads something before the first rollout's clock runs."""

    def open(self) -> None: ...


@runtime_checkable
class Sends(Protocol):
    """What it holds works in another process: it is described here, and can be asked nothing."""

    sends: ClassVar[bool]


@runtime_checkable
class Loads(Protocol):
    """Holds a network of its own that begins as the run's model: a pass-rate estimator, a sampler, a strategy."""

    def open(self, model: Path, seed: int) -> None: ...


# ---- looking through wrappers


def parts(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Every mechanism within a value, itself first, with the path that leads to it."""
    if isinstance(value, tuple | list):
        for index, item in enumerate(value):
            yield from parts(item, f"{path}.{index}")
    elif is_dataclass(value) and not isinstance(value, type):
        yield path.removeprefix("."), value
        for field in fields(value):
            if field.init:
                yield from parts(getattr(value, field.name), f"{path}.{field.name}")


def inside(value: Any, kind: type[Kind]) -> list[Kind]:
    """Every part of this role or ability within a value, itself first, each once."""
    return list({id(part): part for _, part in parts(value) if plays(part, kind)}.values())


def outermost(value: Any, kind: type[Kind]) -> list[tuple[str, Kind]]:
    """Those that stand in no other of the same ability, nor in one that sends: what it holds is then its own affair."""
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
    """Those within a value, inside others too, but for what a part teaches itself or has sent away."""
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
    """Whether a part names this role as its base, or has this ability."""
    return isinstance(part, kind) if kind.__module__ == __name__ else kind in type(part).__mro__


def generated(engine: Any) -> int | None:
    """Tokens sampled, by all engines that say how many."""
    told = [part.num_generated for _, part in outermost(engine, CountsTokens)]
    return sum(count or 0 for count in told) if told else None


def uses_gpu(value: Any) -> bool:
    return any(part.device.startswith("cuda") for part in inside(value, OnDevice))
