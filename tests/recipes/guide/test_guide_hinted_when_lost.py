"""Hints where all failed: who is asked again, what the engine reads, and what is trained."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from strop.backends import Completion
from strop.control.budgets.waves import AgainWhenLost
from strop.control.samplers.uniform import Uniform
from strop.environments.bundled.arithmetic import Arithmetic
from strop.environments.bundled.keyvalue import KeyValue
from strop.environments.format.hints import hinted
from strop.environments.single_turn import SingleTurn
from strop.errors import ConfigurationError
from strop.generate.agents.chat import Chat
from strop.generate.engines.scripted import Scripted
from strop.generate.group_rollouts import GroupPlayer
from strop.launch.checks.preflight import check
from strop.launch.running.launch import launch
from strop.pipeline import train
from strop.recipes import build, recipe_named
from strop.recipes.guide.guide import ContrastInComparisonGroup, HintedWhenLost
from strop.storage.ledger.ledger import Ledger
from strop.storage.run_folder import RunFolder, read_rows
from strop.types import Group, IntArray, Message, Origin, Outcome, Sampling, Task
from tests.building import make_group
from tests.clock import run_virtually
from tests.generate.talking import Recording, policy_of, save_folder
from tests.test_pipeline import Recorder, make_run, opened
from tests.tiny_models import save_pocket_like

ENV = Arithmetic(3)


@dataclass
class Reading(Scripted):
    """Keeps what it was asked."""

    prompts: dict[int, str] = field(default_factory=dict)

    async def sample(self, prompt: IntArray, sampling: Sampling, key: int) -> Completion:
        self.prompts[key] = self._tokenizer.decode(prompt.tolist())
        return await super().sample(prompt, sampling, key)


def completion(prompt: str, key: int) -> str:
    """Right in about half of the rollouts with a hint; without one, only at sums of an even first term."""
    question = prompt.rpartition("=?")[0]
    first, second = (int("".join(letter for letter in term if letter.isdigit())) for term in question.split("+"))
    is_able = "hint:" in prompt or first % 2 == 0
    return str(first + second) if is_able and key % 2 else "0"


def played(tmp_path: Path) -> tuple[Ledger, Reading, list[dict[str, float]]]:
    model, engine = save_pocket_like(tmp_path / "model"), Reading(completion)
    run = make_run(
        steps=3,
        envs=(ENV,),
        sampler=Uniform((ENV,)),
        engine=engine,
        budget=AgainWhenLost(3, 4),
        strategy=HintedWhenLost((ENV,)),
        gates=(ContrastInComparisonGroup(),),
    )
    with opened(run, model, tmp_path / "ledger.db") as (flow, recorder):
        run_virtually(train(flow))
        assert isinstance(recorder, Recorder)
        rows = recorder.rows
    return Ledger(tmp_path / "ledger.db", read_only=True), engine, rows


def test_only_tasks_where_all_failed_are_tried_with_a_hint(tmp_path: Path) -> None:
    ledger, _, rows = played(tmp_path)
    assert ledger.violations() == []
    query = "SELECT number, origin, comparison_group, reward, tokens FROM rollouts ORDER BY number, id"
    groups: dict[int, list[tuple[str, str, float]]] = {}
    for number, origin, comparison_group, reward, _ in ledger._rows(query):
        groups.setdefault(number, []).append((origin, comparison_group, reward))
    waves = [(own, [each for each in rollouts if each[0] == "guided"]) for rollouts in groups.values() for own in
             [[each for each in rollouts if each[0] == "policy"]]]  # fmt: skip
    assert all(len(own) == 3 for own, _ in waves)
    assert all(len(again) == (4 if not any(reward for *_, reward in own) else 0) for own, again in waves)
    assert {bool(again) for _, again in waves} == {True, False}, "both kinds of group were there"
    assert all(comparison_group == "hinted" for _, again in waves for _, comparison_group, _ in again)
    sampled = sum(tokens for *_, tokens in ledger._rows(query))
    assert rows[-1]["tokens_generated"] == sampled, "both waves count"


def test_the_engine_reads_the_hint_and_the_trainer_does_not(tmp_path: Path) -> None:
    ledger, engine, _ = played(tmp_path)
    rollouts = [each for step in (1, 2, 3) for group in ledger.trained_groups(step) for each in group.rollouts]
    guided = [each for each in rollouts if each.origin is Origin.GUIDED]
    assert guided and len(guided) < len(rollouts)
    for each in guided:
        text = engine._tokenizer.decode(each.turns[0].prompt.tolist())
        assert "hint" not in text and each.task.messages[0].content in text
        assert each.turns[0].logprobs.tolist() == [-1.0] * each.num_tokens, "as they were sampled"
    hints = [prompt for prompt in engine.prompts.values() if "hint:" in prompt]
    assert len(hints) >= len(guided)
    for step in (1, 2, 3):
        for group in ledger.trained_groups(step):
            assert len({each.comparison_group for each in group.rollouts}) == 1, "the wave that failed teaches nothing"


def test_a_hint_is_the_beginning_of_the_working() -> None:
    task = ENV.task(0)
    first, second = task.messages[0].content.removesuffix("=?").split("+")
    (message,) = hinted((ENV,), task, 1)
    assert message == Message("user", f"{first}+{second}=? hint: {first}+{second}={int(first) + int(second)}")


class Gone(SingleTurn):
    async def reset(self, task: Task) -> None:
        raise ConnectionError("gone")


class Unreachable(Arithmetic):
    def episode(self) -> SingleTurn:
        return Gone(self)


def test_an_rollout_that_never_began_is_told_as_it_is(tmp_path: Path) -> None:
    env = Unreachable(3)
    group = make_group([0.0])
    group.task = env.task(0)
    policy = policy_of(save_folder(tmp_path), Recording([]))

    async def score(group: Group) -> None:
        return None

    play = GroupPlayer(group, policy, (env,), Chat(), 0, score)
    (rollout,) = asyncio.run(HintedWhenLost((env,))(group, [play.another()], play))
    assert rollout.outcome is Outcome.FAILED and rollout.turns == () and rollout.origin is Origin.GUIDED


def test_envs_without_hints_are_refused() -> None:
    run = build(recipe_named("guide"), {"env": "keyvalue:2"})
    with pytest.raises(ConfigurationError, match="environment keyvalue has no hints: add a column `hint`"):
        check(run)
    with pytest.raises(ConfigurationError, match="environment keyvalue gives no hints"):
        hinted((KeyValue(2),), KeyValue(2).task(0), 1)


def test_in_a_run_hinted_rollouts_are_not_scored_again_behind_the_plain_prompt(tmp_path: Path) -> None:
    """Their logprobs belong to the prompt that was read, and would look like those of other weights."""
    sizes = {"steps": 1, "groups_per_step": 3, "group_size": 3, "heldout_tasks": 1, "env": "arithmetic:6"}
    run = build(recipe_named("guide"), {**sizes, "seed": 0})
    launch(run, tmp_path, "run")
    ledger = Ledger(RunFolder(tmp_path / "run").ledger, read_only=True)
    origins = [each.origin for group in ledger.trained_groups(1) for each in group.rollouts]
    ledger.close()
    assert Origin.GUIDED in origins, "nothing was tested"
    row = read_rows(tmp_path / "run" / "metrics.jsonl")[-1]
    assert 0 < row["guided/share"] <= 1 and row["guided/shaped"] > 0
