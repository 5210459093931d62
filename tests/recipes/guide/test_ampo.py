"""AMPO's teachers: when they are asked, whose trace is understood best, and who makes room for it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from math import log
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from strop.control.budgets.fixed import Fixed
from strop.control.samplers.uniform import Uniform
from strop.environments.bundled.arithmetic import Arithmetic
from strop.errors import ConfigurationError, LLMClientError
from strop.generate.agents.demonstrator import Demonstrate
from strop.generate.agents.llm_agent import LLMAgent
from strop.generate.engines.scripted import Scripted
from strop.generate.llm_clients.without_model import Canned, Procedural
from strop.pipeline import train
from strop.recipes import build, recipe_named
from strop.recipes.guide.ampo import COMPREHENDED, TeachersWhenLost
from strop.roles import Agent, Player
from strop.standins.solution_styles import backward, brief, largest_first
from strop.training.advantages.group_relative import GroupMean
from strop.training.requirements import LOGPROBS, PolicyStatistic
from strop.types import Group, Message, Origin, Outcome, Rollout, Start, Task
from tests.building import make_group, turn
from tests.clock import run_virtually
from tests.generate.talking import Recording, policy_of, save_folder
from tests.recipes.guide.test_ghpo import terms
from tests.test_pipeline import make_run, opened
from tests.tiny_models import save_pocket_like

TASK = Task((Message("user", "5+7=?"),), "12", "test")


@dataclass(frozen=True)
class Teacher(Agent):
    completion: str
    paid: float | None = 1.0
    probabilities: tuple[float, ...] = (0.5, 0.5)  # that the policy gives the tokens of 12 after this working


@dataclass(frozen=True)
class Silent(Agent):
    pass


@dataclass
class Staged(Player):
    """Own rollouts are paid as given, None where the reward fails; teachers say their completion."""

    own: Sequence[float | None]
    folder: Path
    count: int = 0
    asked: list[Agent] = field(default_factory=list)
    looked: list[str] = field(default_factory=list)
    paid: dict[str, float | None] = field(default_factory=dict)
    likely: dict[str, tuple[float, ...]] = field(default_factory=dict)

    async def __call__(self, start: Start, agent: Agent | None = None, task: Task | None = None) -> Rollout:
        said, origin = "0", Origin.POLICY
        self.paid[start.id] = self.own[int(start.id)] if agent is None else None
        if agent is not None:
            self.asked.append(agent)
            if isinstance(agent, Silent):
                raise LLMClientError("nobody there")
            assert isinstance(agent, Teacher)
            said, origin, self.paid[start.id] = agent.completion, Origin.TEACHER, agent.paid
            self.likely[start.id] = agent.probabilities
        spoken = replace(turn(3), message=Message("assistant", said))
        return Rollout(start.id, TASK, (spoken,), Outcome.FINISHED, origin)

    def another(self, **changes: Any) -> Start:
        self.count += 1
        return Start(f"t{self.count}", self.count)

    async def score(self, rollouts: Sequence[Rollout]) -> list[Rollout | None]:
        paid = [self.paid[rollout.id] for rollout in rollouts]
        return [None if reward is None else make_group([reward]).rollouts[0] for reward in paid]

    async def look(self, rollouts: Sequence[Rollout], needs: frozenset[PolicyStatistic]) -> list[dict[str, Any]]:
        assert needs == {LOGPROBS}
        policy = policy_of(self.folder, Recording([]))
        self.looked += [policy.template.decode(rollout.turns[-1].tokens) for rollout in rollouts]
        found = []
        for rollout in rollouts:
            likely = self.likely[rollout.id]
            before = rollout.num_tokens - len(likely)
            found.append({LOGPROBS.name: np.array([-9.0] * before + [log(each) for each in likely], np.float32)})
        return found


def played(folder: Path, own: Sequence[float | None], *teachers: Agent, **more: Any) -> tuple[list[Rollout], Staged]:
    strategy, player = TeachersWhenLost(teachers, **more), Staged(own, folder)
    strategy.meet(policy_of(folder, Recording([])))
    starts = [Start(str(index), 7 * index + 3) for index in range(len(own))]
    brought, _ = run_virtually(strategy(Group(0, TASK, []), starts, player))
    return brought, player


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_folder(tmp_path_factory.mktemp("model"))


GOOD = Teacher("<think>5+7=12</think>12", probabilities=(0.2, 0.6))  # .9 * .4 + .1 = .46
BARE = Teacher("12", probabilities=(0.3, 0.5))  # .9 * .4 = .36
LOOSE = Teacher("<think>7+5=12</think>12.0", probabilities=(0.9, 0.7))  # .9 * .8 + .1 = .82


def test_who_is_understood_best_replaces_some_of_those_who_failed(folder: Path) -> None:
    brought, player = played(folder, [0.0] * 5, GOOD, BARE, LOOSE)
    own, traces = brought[:3], brought[3:]
    assert [each.origin for each in brought] == [Origin.POLICY] * 3 + [Origin.TEACHER] * 2
    assert [each.id for each in traces] == ["t3", "t1"], "the best first, and no third"
    assert [each.facts[COMPREHENDED] for each in traces] == pytest.approx([0.82, 0.46])
    assert player.looked == ["<think>5+7=12</think>12", "12", "<think>7+5=12</think>12"], "with the right answer"
    assert len({each.id for each in own}) == 3 and all(each.id in "01234" for each in own)
    again, _ = played(folder, [0.0] * 5, GOOD, BARE, LOOSE)
    assert [each.id for each in again] == [each.id for each in brought]


def test_credit_by_hand(folder: Path) -> None:
    """k = 2 of n = 8, paid 1: 1 - 2/8 for traces, -2/8 for the rest."""
    brought, player = played(folder, [0.0] * 8, GOOD, BARE, LOOSE)
    for rollout in brought:
        rollout.reward = player.paid[rollout.id] or 0.0
    GroupMean()([Group(0, TASK, brought)])
    given = [float(each.advantages[0]) for each in brought if each.advantages is not None]
    assert given == pytest.approx([-0.25] * 6 + [0.75] * 2)


@pytest.mark.parametrize("own", [[0.0, 0.0, 1.0], [None, None, None], [0.0, 0.01, None]])
def test_nobody_is_asked_where_one_is_right_or_nothing_is_known(folder: Path, own: list[float | None]) -> None:
    brought, player = played(folder, own, GOOD)
    assert [each.id for each in brought] == ["0", "1", "2"] and not player.asked and not player.looked


def test_a_reward_that_failed_is_no_success_and_no_failure(folder: Path) -> None:
    brought, _ = played(folder, [0.0, None, -1.0], GOOD)
    assert [each.origin for each in brought].count(Origin.TEACHER) == 1


def test_silent_and_wrong_teachers_bring_nothing(folder: Path) -> None:
    wrong, failed = replace(LOOSE, paid=0.0), replace(LOOSE, paid=None)
    brought, player = played(folder, [0.0, 0.0, 0.0], Silent(), wrong, failed, BARE)
    assert [each.id for each in brought[2:]] == ["t4"] and len(player.asked) == 4
    brought, player = played(folder, [0.0, 0.0], Silent(), wrong)
    assert [each.id for each in brought] == ["0", "1"] and not player.looked


def test_one_own_rollout_stays(folder: Path) -> None:
    brought, _ = played(folder, [0.0, 0.0], GOOD, BARE, LOOSE, count=3)
    assert [each.origin for each in brought] == [Origin.POLICY, Origin.TEACHER]


def test_refuses_what_cannot_work(folder: Path) -> None:
    with pytest.raises(ConfigurationError, match="TeachersWhenLost needs teachers and count >= 0, got 0 and 2"):
        TeachersWhenLost(())
    with pytest.raises(ConfigurationError, match="got 1 and -1"):
        TeachersWhenLost((GOOD,), -1)
    with pytest.raises(ConfigurationError, match="call meet"):
        TeachersWhenLost((GOOD,))._with_answer(Rollout("0", TASK, (turn(1),), Outcome.FINISHED))
    with pytest.raises(ConfigurationError, match="names no model: need http"):
        build(recipe_named("ampo"), {"teachers": "http://localhost:1/v1"})


def test_models_behind_addresses_are_teachers() -> None:
    run = build(recipe_named("ampo"), {"teachers": "http://localhost:1/v1#a, http://localhost:2/v1#b"})
    assert isinstance(run.strategy, TeachersWhenLost) and len(run.strategy.teachers) == 2


def test_ways_to_add() -> None:
    assert backward("1+22+3=?") == "<think>3+22=25 25+1=26</think>26"
    assert largest_first("1+22+3=?") == "<think>22+3=25 25+1=26</think>26"
    assert brief("careful: 1+22+3=?") == "<think>23+3=26</think>26"
    with pytest.raises(ValueError, match="not a sum"):
        brief("rev(abc)=?")


# ---- in a run

ENV = Arithmetic(3)


def completion(prompt: str, key: int) -> str:
    """Sums of an even first term are solved now and then, the others never."""
    asked = terms(prompt)
    return str(sum(asked)) if asked[0] % 2 == 0 and key % 3 == 0 else "0"


def test_in_a_run_groups_that_failed_hold_two_traces(tmp_path: Path) -> None:
    other = LLMAgent(Procedural(backward))
    strategy = TeachersWhenLost((Demonstrate(), other, LLMAgent(Canned())))
    run = make_run(
        steps=2, envs=(ENV,), sampler=Uniform((ENV,)), engine=Scripted(completion), budget=Fixed(4), strategy=strategy
    )
    with opened(run, save_pocket_like(tmp_path / "model"), tmp_path / "ledger.db") as (flow, recorder):
        strategy.meet(flow.policy)
        run_virtually(train(flow))
        assert flow.ledger.violations() == []
        groups = [group for step in (1, 2) for group in flow.ledger.trained_groups(step)]
        rows = flow.ledger._rows("SELECT number, origin, outcome, tokens FROM rollouts")
    kinds = set()
    for group in groups:
        traces = [each for each in group.rollouts if each.origin is Origin.TEACHER]
        is_lost = not any(each.reward for each in group.rollouts if each.origin is Origin.POLICY)
        assert len(group.rollouts) == 4 and len(traces) == (2 if is_lost else 0)
        made = [row for row in rows if row[0] == group.number]
        assert len(made) == (6 if is_lost else 4), "who made room has a row, too"
        assert all(each.reward == 1.0 and 0 < each.facts[COMPREHENDED] <= 1 for each in traces)
        kinds.add(is_lost)
    assert kinds == {True, False}
    sampled = sum(tokens for _, origin, _, tokens in rows if origin == "policy")
    assert recorder.rows[-1]["tokens_generated"] == sampled
