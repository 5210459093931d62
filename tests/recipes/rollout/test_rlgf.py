"""Rollouts shared with a guide: roll-in and roll-out, what is trained, and the reward of a first part."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest

from strop.backends import Completion
from strop.control.budgets.fixed import Fixed
from strop.environments.bundled.arithmetic import Arithmetic
from strop.errors import ConfigurationError, ModelError
from strop.filter.rewards.from_strategy import Noted
from strop.generate.engines.scripted import Scripted
from strop.generate.engines.wrappers.policy_and_reference import WithReference
from strop.generate.rollout_limits import REFERENCE
from strop.generate.strategies.independent import Independent
from strop.recipes.rollout.rlgf import RolledWithGuide
from strop.roles import Agent, Player, Reward, Strategy
from strop.training.reductions.means import OwnTokenMean
from strop.types import ZERO_TO_ONE, Group, IntArray, Origin, Outcome, Rollout, Sampling, ScoreRange, Start, Task
from tests.building import make_group
from tests.clock import run_virtually
from tests.generate.strategies.watched import Counting, Watched, watched
from tests.generate.talking import save_folder
from tests.tiny_models import save_pocket_like


@dataclass
class Voiced(Counting):
    """The guide writes eight 2s, the policy five 1s."""

    guided: set[int] = field(default_factory=set)  # random keys

    async def sample(self, prompt: IntArray, sampling: Sampling, key: int) -> Completion:
        self.guided |= {key} if sampling.policy_name == REFERENCE else set()
        return await super().sample(prompt, sampling, key)

    def _completion(self, prompt: str, key: int) -> str:
        return "2" * 8 if key in self.guided else "1" * 5


@dataclass(frozen=True)
class ByLength(Reward):
    grades: ClassVar[ScoreRange | None] = ZERO_TO_ONE

    is_inline = True

    def __call__(self, group: Group) -> list[float]:
        return [float(len(rollout.completion)) for rollout in group.rollouts]


def rolled(tmp_path: Path, strategy: Strategy) -> Watched:
    parts = {"strategy": strategy, "budget": Fixed(4), "rewards": (Noted(ByLength()),), "engine": Voiced({})}
    return watched(tmp_path, {}, Arithmetic(2), 1, **parts)


def test_the_guide_begins_and_the_policy_goes_on(tmp_path: Path) -> None:
    found = rolled(tmp_path, RolledWithGuide(0, mixed=1.0, length=6))
    first_parts = {each.id: each for each in found.made if each.origin is Origin.TEACHER}
    cuts = set()
    for rollout in (each for group in found.drawn for each in group.rollouts):
        (turn,), parent = rollout.turns, first_parts[rollout.parent]
        assert rollout.origin is Origin.BRANCHED and len(turn.tokens) == 6, "five and the end"
        assert turn.prefix.tolist() == parent.turns[0].tokens.tolist() and parent.outcome is Outcome.PRUNED
        assert rollout.completion == "2" * turn.num_prefix + "1" * 5 and rollout.reward == turn.num_prefix + 5
        cuts.add(turn.num_prefix)
    assert cuts == {1, 2, 3, 4, 5} and found.is_counted_once()


def test_the_policy_begins_and_the_guide_ends(tmp_path: Path) -> None:
    found = rolled(tmp_path, RolledWithGuide(0, "aggrevated", mixed=1.0, length=4))
    for group in found.drawn:
        rests = {each.parent: each for each in group.rollouts if each.origin is Origin.TEACHER}
        first_parts = [each for each in group.rollouts if each.origin is Origin.GUIDED]
        shares = OwnTokenMean()([group])
        assert len(first_parts) == len(rests) == 4
        for rollout in first_parts:
            rest = rests[rollout.id]
            assert 1 <= rollout.num_tokens <= 3 and rollout.completion == "1" * rollout.num_tokens
            assert rest.completion == rollout.completion + "2" * 8 and rest.num_tokens == 9
            assert rollout.reward == rest.reward == rollout.num_tokens + 8, "the beginning earns what the whole did"
            assert shares[rest.id].tolist() == [0.0] * 9 and shares[rollout.id].min() > 0, "a teacher's is not trained"
    assert found.is_counted_once()


@dataclass
class FailingRest(Player):
    """The policy's beginning is paused; the environment fails on the guide's part."""

    async def __call__(self, start: Start, agent: Agent | None = None, task: Task | None = None) -> Rollout:
        made = make_group([0.0], failed=[] if start.pause else [0]).rollouts[0]
        outcome = Outcome.PRUNED if start.pause else Outcome.FAILED
        return replace(made, id=start.id, origin=start.origin, parent=start.parent, outcome=outcome, facts={})

    def another(self, **changes: object) -> Start:
        return Start("0/9", 9)

    async def score(self, rollouts: Sequence[Rollout]) -> list[Rollout | None]:
        return [None for _ in rollouts]


def test_a_first_part_whose_rest_failed_has_no_reward() -> None:
    strategy = RolledWithGuide(0, "aggrevated", mixed=1.0)
    brought, _ = run_virtually(strategy(make_group([]), [Start("0/0", 1)], FailingRest()))
    (rest,) = brought
    assert (rest.id, rest.parent, rest.outcome) == ("0/9", "0/0", Outcome.FAILED)
    assert rest.origin is Origin.TEACHER and "noted" not in rest.facts, "a reward of 0 would be a score of the policy's"


def test_without_the_guide_it_is_the_policy_alone(tmp_path: Path) -> None:
    """mixed = 0, and where the guide ends before every cut."""
    plain = rolled(tmp_path / "plain", Independent())
    expected = [(each.id, each.turns[0].tokens.tolist(), each.origin) for each in plain.made]
    none = rolled(tmp_path / "none", RolledWithGuide(0, mixed=0.0))
    assert [(each.id, each.turns[0].tokens.tolist(), each.origin) for each in none.made] == expected
    late = rolled(tmp_path / "late", RolledWithGuide(0, "aggrevated", mixed=1.0, length=1000))
    kept = [each for group in late.drawn for each in group.rollouts if each.num_tokens == 6]
    assert kept and all(each.origin is Origin.POLICY for each in kept)


def test_roll_in_by_rule_and_version() -> None:
    assert [RolledWithGuide(0, rule).rolls_in(7) for rule in ("ppo++", "aggrevated")] == [True, False]
    later = RolledWithGuide(0, "d2lols", switch=20)
    assert [later.rolls_in(version) for version in (0, 19, 20, 99)] == [False, False, True, True]
    assert all(RolledWithGuide(0, "d2lols", switch=0).rolls_in(version) for version in range(5)), "ppo++ from the start"
    probability = [RolledWithGuide(3, "lols", share=0.8).rolls_in(version) for version in range(1000)]
    assert 0.75 < np.mean(probability) < 0.85 and probability != [
        RolledWithGuide(4, "lols", share=0.8).rolls_in(version) for version in range(1000)
    ]


def test_another_model_may_guide(tmp_path: Path) -> None:
    """Its tokens are of no version of this run; one whose words differ is refused."""
    model, other = save_pocket_like(tmp_path / "model"), save_pocket_like(tmp_path / "other")
    for folder, version in ((str(other), -1), ("", 0)):
        engine = WithReference(Scripted({"": "1"}), Scripted({"": "2"}), folder)
        engine.open(model)
        completion, _ = run_virtually(engine.sample(np.array([5]), Sampling(policy_name=REFERENCE), 1))
        own, _ = run_virtually(engine.sample(np.array([5]), Sampling(), 1))
        assert completion.versions.tolist() == [version] * 2 and own.versions.tolist() == [0, 0]
    engine = WithReference(Scripted({"": "1"}), Scripted({"": "2"}), str(save_folder(tmp_path / "words")))
    with pytest.raises(ModelError, match="has another vocabulary"):
        engine.open(model)


@pytest.mark.parametrize("bad", [{"rule": "ppo+"}, {"mixed": 1.1}, {"share": -0.1}, {"length": 1}])
def test_bad_input_is_refused(bad: dict[str, float]) -> None:
    with pytest.raises(ConfigurationError, match=r"RolledWithGuide (knows no rule|needs 0 <= mixed)"):
        RolledWithGuide(0, **bad)  # type: ignore[arg-type]
