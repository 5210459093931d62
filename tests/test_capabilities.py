"""Traversal of nested parts: capabilities are found inside wrappers, but not in parts that run in another process."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import Any, ClassVar

from strop import capabilities
from strop.capabilities import Closes, Settles, generated, learners_in, outermost
from strop.generate.engines.scripted import Scripted
from strop.placement.process_engine import LocalProcess
from strop.placement.ray_engine import RayActor
from strop.training.trainers.ranks import Ranks
from strop.training.trainers.torch import TorchTrainer


@dataclass
class Settling:
    """Has the ability, and holds another that has it too."""

    inner: object = None

    def settle(self) -> None:
        pass


@dataclass
class Counting(Scripted):
    """Says how many tokens it has sampled."""

    num_generated: ClassVar[int] = 7


@dataclass
class Plain:
    inner: object


def test_the_outermost_of_an_ability_is_found_through_parts_that_lack_it() -> None:
    part = Settling(Settling())
    assert outermost(Plain((Plain(part), Settling())), Settles) == [("inner.0.inner", part), ("inner.1", Settling())]
    assert outermost(part, Settles) == [("", part)]


def test_what_works_in_another_process_is_asked_nothing_here() -> None:
    """The trainer within `Ranks` is opened in its ranks: here it has no model to plan memory for."""
    assert outermost(Plain(TorchTrainer()), Settles) and not outermost(Ranks(TorchTrainer()), Settles)
    assert [path for path, _ in outermost(Plain(Ranks(TorchTrainer())), Closes)] == ["inner"]
    engine = Counting({"": "1"})
    assert generated(Plain(engine)) == 7 and generated(Plain(RayActor(engine))) is None
    assert generated(Plain(LocalProcess(engine))) == 0  # it counts itself, and has heard nothing yet


@dataclass(eq=False)
class Learning:
    """Learns, and holds others that may."""

    inner: object = None

    def learn(self, groups: Any) -> dict[str, float]:
        return {}


@dataclass(eq=False)
class Teaching(Learning):
    teaches: ClassVar[bool] = True


def test_whoever_learns_hides_nobody_who_does_but_those_it_teaches() -> None:
    """A learner within another learned nothing; one that stands in two places learns once."""
    inner = Learning()
    outer, teacher = Learning(Plain(inner)), Teaching((inner, Learning()))
    assert learners_in(outer) == [outer, inner] and learners_in((inner, outer)) == [inner, outer]
    assert learners_in(Plain(teacher)) == [teacher]
    assert learners_in((RayActor(inner), outer)) == [outer, inner], "what is sent away learns there"  # type: ignore[arg-type]


def test_no_two_capabilities_are_matched_by_the_same_methods() -> None:
    """`isinstance` compares names of members alone, so equal names would make one protocol match the other's parts."""
    protocols = {
        name: frozenset(each for each in {**vars(kind), **kind.__annotations__} if not each.startswith("_"))
        for name, kind in vars(capabilities).items()
        if getattr(kind, "_is_runtime_protocol", False) and kind.__module__ == capabilities.__name__
    }
    assert len(protocols) > 25 and all(protocols.values())
    assert not [pair for pair in combinations(protocols, 2) if protocols[pair[0]] == protocols[pair[1]]]
