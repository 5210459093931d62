"""Skills and solvers: who reads what, who is compared with whom, and what a skill is worth."""

from __future__ import annotations

import asyncio
from pathlib import Path

import numpy as np
import pytest
import torch

from strop.control.budgets.fixed import Fixed
from strop.environments.bundled.arithmetic import Arithmetic
from strop.environments.data.heldout_split import is_heldout, prompt_of
from strop.errors import ConfigurationError
from strop.filter.rewards.from_environment import Earned
from strop.filter.rewards.from_strategy import Noted
from strop.generate.policy import rollout_key
from strop.recipes.replay.evolving_rl import ComparisonGroupWeighted, ExtractAndSolve, RoleEntropy, related
from strop.roles import Episode
from strop.training.advantages.group_relative import GroupStandard
from strop.training.comparison_groups import comparison_groups
from strop.types import Message, Observation, Origin, Outcome, Rollout, Task
from tests.building import make_batch, make_group, say, written
from tests.generate.asking import player_of
from tests.generate.strategies.watched import Watched, watched

ENV = Arithmetic(3)


def completion(prompt: str, key: int) -> str:
    """Skills are `good`, `bad` or none; solvers are right with the good one, and with the other now and then."""
    if "Write down" in prompt:
        return ("good", "bad", "")[key % 3]
    question = prompt.rpartition("=?")[0]
    first, second = (int("".join(letter for letter in term if letter.isdigit())) for term in question.split("+"))
    return str(first + second) if "good" in prompt or key % 5 == 0 else "0"


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Watched:
    folder = tmp_path_factory.mktemp("skills")
    parts = {"strategy": ExtractAndSolve((ENV,), 2), "budget": Fixed(3), "rewards": (Noted(Earned()),)}
    return watched(folder, completion, ENV, 2, context=200, **parts)


def of(rollouts: list[Rollout], comparison_group: str) -> list[Rollout]:
    return [each for each in rollouts if each.comparison_group.startswith(comparison_group)]


def test_each_skill_is_tried_on_each_related_task(found: Watched) -> None:
    worths = set()
    for group in found.drawn:
        skills, solvers = of(group.rollouts, "extractor"), of(group.rollouts, "solver")
        (source,) = of(group.rollouts, "source")
        assert source.origin is Origin.POLICY and source.task.id == group.task.id and len(skills) == 3
        tasks = {each.task.id for each in solvers}
        formed = [skill for skill in skills if skill.completion]
        assert len(tasks) == (2 if formed else 0) and group.task.id not in tasks
        assert len(solvers) == 2 * len(formed) and all(each.origin is Origin.GUIDED for each in (*skills, *solvers))
        for skill in skills:
            own = [each for each in solvers if each.parent == skill.id]
            assert {each.task.id for each in own} == (tasks if skill.completion else set())
            assert skill.reward == (sum(each.reward for each in own) / 2 if own else 0.0)
            worths.add((skill.completion, skill.reward))
            for each in own:
                read = found.engine.prompts[rollout_key(0, each.id)]
                assert f"{skill.completion}<|end|>" in read and each.task.messages[0].content in read
                assert found.engine.prompt_of(each) == read, "trained behind the skill"
            assert source.completion in found.engine.prompt_of(skill)
    assert ("good", 1.0) in worths and ("", 0.0) in worths and min(worth for _, worth in worths) == 0.0
    assert found.is_counted_once()


class Away(Arithmetic):
    """An environment that answers whoever rollouts its first task, and nobody else."""

    def episode(self) -> Episode:  # type: ignore[override]
        return _Away(super().episode())


class _Away(Episode):
    def __init__(self, inner: Episode) -> None:
        self.inner = inner

    async def reset(self, task: Task) -> None:
        if task.id != ENV.task(0).id:
            raise ConnectionError("away")
        await self.inner.reset(task)

    async def step(self, completion: Message) -> Observation:
        return await self.inner.step(completion)

    async def close(self) -> None:
        await self.inner.close()


def test_a_skill_that_the_env_let_nobody_try_is_no_0(tmp_path: Path) -> None:
    env, said = Away(3), iter(["46", "good", "", "46", "46"])
    play, _ = player_of(tmp_path, env, env.task(0), lambda prompt, call: next(said))
    starts = [play.another(), play.another()]
    source, good, empty, *solvers = asyncio.run(ExtractAndSolve((env,), 2)(play.group, starts, play))
    assert source.outcome is Outcome.FINISHED and [each.outcome for each in solvers] == [Outcome.FAILED] * 2
    assert good.outcome is Outcome.FAILED and "skill" in good.error
    assert empty.outcome is not Outcome.FAILED and empty.facts == {"noted": 0.0}, "badly formed: its own fault"


def test_roles_and_tasks_are_compared_apart(found: Watched) -> None:
    """GRPO of each comparison group alone, and 0.2 of it for skills."""
    for group in found.drawn:
        ComparisonGroupWeighted(GroupStandard(), "extractor", 0.2)(comparison_groups([group]))
        for name in {each.comparison_group for each in group.rollouts}:
            rollouts = [each for each in group.rollouts if each.comparison_group == name]
            rewards = [each.reward for each in rollouts]
            mean = sum(rewards) / len(rewards)
            spread = (sum((r - mean) ** 2 for r in rewards) / max(len(rewards) - 1, 1)) ** 0.5
            factor = 0.2 if name == "extractor" else 1.0
            for each in rollouts:
                expected = factor * (each.reward - mean) / (spread + 1e-6)
                assert each.advantages is not None
                assert each.advantages.tolist() == pytest.approx([expected] * each.num_tokens, abs=1e-5)
    metrics = ComparisonGroupWeighted(GroupStandard(), "extractor").learn(found.drawn)
    assert 0 < metrics["advantage_of/extractor"] < 0.5


def test_equal_skills_have_no_credit_and_a_constant_factor_changes_no_solver() -> None:
    group, tenfold = make_group([1.0, 1.0, 1.0]), make_group([10.0, 0.0, 10.0])
    for each in group.rollouts:
        each.comparison_group = "extractor"
    once = make_group([1.0, 0.0, 1.0])
    rule = ComparisonGroupWeighted(GroupStandard(), "extractor")
    rule([group, tenfold, once])
    assert all(each.advantages is not None and each.advantages.tolist() == [0.0] for each in group.rollouts)
    for one, other in zip(once.rollouts, tenfold.rollouts, strict=True):
        np.testing.assert_allclose(one.advantages, other.advantages, rtol=1e-5)  # type: ignore[arg-type]


def test_only_marked_turns_pay_for_entropy() -> None:
    batch, output = make_batch([[-1.0, -1.0], [-1.0]]), say([[-1.0, -1.0], [-1.0]], [[0.5, 0.7], [0.9]])
    batch.aux = {"extractor": torch.tensor([1.0, 1.0, 1.0, 0.0, 0.0], dtype=torch.float64)}
    loss, metrics = RoleEntropy("extractor")(output, batch)
    assert written(batch, loss) == pytest.approx([0.5, 0.7, 0.0])
    assert metrics == {"entropy_of/extractor": pytest.approx(1.2 / 3)}


def test_related_tasks_share_most_with_the_source() -> None:
    task = ENV.task(0)
    near = related(ENV, task, 3, key=5)
    assert len({each.id for each in near} | {task.id}) == 4 and not any(is_heldout(prompt_of(each)) for each in near)
    assert related(ENV, task, 3, key=5) == near != related(ENV, task, 3, key=6)
    terms = set(prompt_of(task).removesuffix("=?").split("+"))
    shared = [len(terms & set(prompt_of(each).removesuffix("=?").split("+"))) for each in near]
    assert shared == sorted(shared, reverse=True)


class Alone(Arithmetic):
    def task(self, index: int, heldout: bool = False) -> Task:
        return super().task(0, heldout)


def test_bad_input_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="related >= 1, got 0"):
        ExtractAndSolve((ENV,), 0)
    with pytest.raises(ConfigurationError, match="has only one task"):
        related(Alone(3), Alone(3).task(0), 2, key=1)
