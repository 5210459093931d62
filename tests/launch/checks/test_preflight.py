"""What cannot work or does nothing is refused with the numbers; what is merely doubtful is said once."""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from strop.control.admission.bounded_lag import BoundedLag
from strop.control.budgets.fixed import Fixed
from strop.control.samplers.few import Few
from strop.control.samplers.uniform import Uniform
from strop.environments.bundled.arithmetic import Arithmetic
from strop.environments.data.table import Table
from strop.errors import ConfigurationError, DataError, ModelError
from strop.evaluation import Evaluation
from strop.filter.gates.best_vs_worst_pair import BestAndWorst
from strop.filter.gates.zero_variance import ZeroVariance
from strop.filter.rewards.controls import Flat
from strop.generate.agents import external_program
from strop.launch.checks.preflight import check
from strop.launch.checks.warnings import warnings_of
from strop.launch.running.launch import launch
from strop.recipes import build, recipe_named
from strop.recipes.classics.distillation import distillation
from strop.recipes.classics.ppo import ppo
from strop.recipes.distill.kdrl import kdrl
from strop.recipes.objective.nft import Nft
from strop.recipes.objective.pacs import Pacs
from strop.recipes.objective.rl4lms import rl4lms
from strop.recipes.objective.seeupo import TurnByTurn
from strop.recipes.setting import Setting
from strop.replay.fifo import Fifo
from strop.run import Run
from strop.storage.ledger.ledger import Ledger
from strop.training.advantages.batch_relative import BatchStandard
from strop.training.advantages.group_relative import GroupMean
from strop.training.corrections.importance_weights import Truncated
from strop.training.losses.cispo import Cispo
from strop.training.losses.clip import Clip
from strop.training.losses.entropy import Entropy
from strop.training.losses.gspo import Gspo
from strop.training.losses.likelihood import Likelihood
from strop.training.losses.reinforce import Reinforce
from strop.training.trainers.torch import TorchTrainer
from strop.training.values.critic import Critic
from strop.types import Sampling, Task
from tests.building import make_group
from tests.recipes.every import every_run
from tests.tiny_models import save_pocket_like

ENVS = (Arithmetic(1),)


def make_run(**parts: Any) -> Run:
    plain: dict[str, Any] = {
        "envs": ENVS,
        "sampler": Uniform(ENVS),
        "advantage": GroupMean(),
        "losses": (Clip(),),
    }
    return Run(**plain | parts)


def in_file(path: Path, count: int, **parts: Any) -> Run:
    """A run on a file of `count` tasks, about a tenth of them held out."""
    rows = [json.dumps({"prompt": f"{n}+0=?", "answer": str(n)}) for n in range(count)]
    path.write_text("\n".join(rows))
    envs = (Table(str(path)),)
    return make_run(envs=envs, sampler=Uniform(envs), **parts)


@dataclass
class Bounded(Fifo):
    capacity: int = field(default=4)


def test_a_plain_run_and_every_recipe_pass(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        external_program, "problem", lambda seen: ""
    )  # whether bubblewrap is installed is not the question
    check(make_run())
    assert warnings_of(make_run()) == []
    folder = save_pocket_like(tmp_path, seed=1)
    solved(folder / "ledger.db")
    for run in every_run(str(folder)).values():
        check(run)


def solved(path: Path) -> None:
    """The ledger of a run in which one of two rollouts of a task was right."""
    ledger, task = Ledger(path), Arithmetic(4).task(0)
    for number in range(2):
        group = replace(make_group([float(number)], number=number), task=task)
        group.rollouts[0].task = task
        ledger.admitted(number, task, 0)
        ledger.finished(group, group, "", 0)
    ledger.sync()
    ledger.close()


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"gates": (BestAndWorst(),), "budget": Fixed(1), "advantage": BatchStandard()},
     r"BestAndWorst compares siblings: need >= 2"),
    ({"gates": (ZeroVariance(),), "budget": Fixed(1), "advantage": BatchStandard()}, r"ZeroVariance compares siblings"),
    ({"gates": (ZeroVariance(),), "rewards": (Flat(),)}, r"is Flat.*ZeroVariance drops.*all of them"),
    ({"buffer": Bounded()}, r"Bounded holds 4 groups, and a step samples 8"),
    ({"sampling": Sampling(temperature=0)}, r"temperature=0 makes all siblings equal, and GroupMean"),
    ({"sampling": Sampling(max_tokens=512)}, r"max_tokens=512 never fits into context=512"),
    ({"losses": (Reinforce(),), "epochs": 2}, r"epochs=2 trains the same tokens again, and Reinforce has no ratio"),
    ({"env_seconds": 0.0}, r"need env_seconds > 0, got 0"),
    ({"rescore_every": -1}, r"need rescore_every >= 0, got -1"),
]  # fmt: skip


@pytest.mark.parametrize(("parts", "reason"), REFUSED)
def test_refused(parts: dict[str, Any], reason: str) -> None:
    with pytest.raises(ConfigurationError, match=reason):
        check(make_run(**parts))


def test_what_is_near_a_refusal_passes() -> None:
    for parts in (
        {"gates": (BestAndWorst(),), "budget": Fixed(2)},
        {"rewards": (Flat(),)},
        {"buffer": Bounded(capacity=8)},
        {"sampling": Sampling(temperature=0), "advantage": BatchStandard()},
        {"sampling": Sampling(max_tokens=511)},
        {"losses": (Reinforce(),), "epochs": 2, "correction": Truncated()},
        {"losses": (Likelihood(),), "epochs": 2},
        {"losses": (Clip(),), "epochs": 2},
    ):
        check(make_run(**parts))


def test_too_few_tasks_for_the_depth_of_the_pipeline(tmp_path: Path) -> None:
    run = in_file(tmp_path / "few.jsonl", 30)
    size = run.envs[0].num_tasks()  # type: ignore[attr-defined]
    check(replace(run, groups_per_step=size))
    with pytest.raises(ConfigurationError, match=rf"few has {size} train tasks, and .* = {size + 1} groups"):
        check(replace(run, groups_per_step=size + 1))
    with pytest.raises(ConfigurationError, match=r"\(lag \+ 1\) \* groups_per_step = 40 groups are under way"):
        check(replace(run, groups_per_step=8, admission=BoundedLag(4)))
    two = (*run.envs, Arithmetic(1))
    check(replace(run, envs=two, sampler=Uniform(two), groups_per_step=2 * size))


@dataclass(frozen=True)
class Hoarse(Arithmetic):
    """Claims to have no end, and has `different` tasks."""

    different: int = 3

    def task(self, index: int, heldout: bool = False) -> Task:
        return super().task(index % self.different, heldout)


def test_a_env_that_repeats_itself() -> None:
    envs = (Hoarse(3), Arithmetic(2))
    run = make_run(envs=envs, sampler=Uniform(envs), groups_per_step=8)
    said = "arithmetic:3 repeats itself: 3 different train tasks among its first 16, and a step has 4 of its own: lower"
    with pytest.raises(ConfigurationError, match=said):
        check(run)
    check(replace(run, groups_per_step=6))
    check(replace(run, groups_per_step=8, sampler=Few(envs, 1)))


def test_a_sampler_that_repeats_itself_needs_a_single_task(tmp_path: Path) -> None:
    run = in_file(tmp_path / "one.jsonl", 2)
    assert run.envs[0].num_tasks() == 1
    with pytest.raises(ConfigurationError, match="one has 1 train tasks"):
        check(replace(run, groups_per_step=8))
    check(replace(run, groups_per_step=8, sampler=Few(run.envs, 1)))


def test_a_file_of_one_task_is_enough_where_another_env_is_measured(tmp_path: Path) -> None:
    run = in_file(tmp_path / "one.jsonl", 1)
    with pytest.raises(DataError, match="leaves no held-out tasks out of 1"):
        check(replace(run, groups_per_step=1))
    elsewhere = replace(run.evaluation, envs=(Arithmetic(1),))
    check(replace(run, groups_per_step=8, sampler=Few(run.envs, 1), evaluation=elsewhere))


DOUBTED: list[tuple[dict[str, Any], str]] = [
    ({"losses": (Reinforce(),), "admission": BoundedLag(2)}, "lag=2 trains tokens of up to 2 versions ago, and"),
    ({"losses": (Reinforce(),), "minibatches": 2}, "minibatches=2: all but the first see tokens of older weights"),
    ({"sampling": Sampling(top_k=5)}, "top_p=1 top_k=5 cut the distribution"),
    ({"losses": (Clip(), Entropy(weight=0.0))}, "Entropy has weight 0 and does nothing"),
    ({"values": Critic()}, "GroupMean does not ask Critic: values do nothing"),
    ({"reward_workers": 3}, "reward_workers=3, and every reward is computed inline"),
    ({"trainer": TorchTrainer(warmup_steps=101)}, "warmup_steps=101 of 100 optimizer steps"),
]  # fmt: skip


@pytest.mark.parametrize(("parts", "warning"), DOUBTED)
def test_doubted_and_not_refused(parts: dict[str, Any], warning: str) -> None:
    run = make_run(**parts)
    check(run)
    (said,) = warnings_of(run)
    assert said.startswith(warning)


def test_what_is_weighed_is_not_doubted() -> None:
    for losses, correction in (((Reinforce(),), Truncated()), ((Clip(),), None), ((Likelihood(),), None)):
        assert warnings_of(make_run(losses=losses, correction=correction, admission=BoundedLag(2), minibatches=2)) == []


def test_a_small_heldout_set_is_doubted_and_measured_once_each(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = save_pocket_like(tmp_path / "model")
    run = in_file(tmp_path / "small.jsonl", 60, model=str(model), steps=0, evaluation=Evaluation(tasks=64))
    size = run.envs[0].num_tasks(heldout=True)  # type: ignore[attr-defined]
    assert 0 < size < 64
    summary = launch(run, tmp_path, "run")
    said = f"warning: small has {size} held-out tasks: accuracy is measured on those and not on 64"
    assert capsys.readouterr().err.count(said) == 1
    wide = summary["heldout_after_high"] - summary["heldout_after_low"]
    assert wide > 3.8 / (size + 3.84), "as wide as a Wilson interval of so many tasks is at 0 or 1"


DISTANT = "always 1 at lag 0 with one optimizer step per batch"


def test_a_ratio_that_is_always_1_is_said() -> None:
    for loss in (Cispo(), Gspo(), Nft(), Pacs()):
        (said,) = warnings_of(make_run(losses=(loss,)))
        assert said.startswith(type(loss).__name__) and DISTANT in said
        for moving in ({"minibatches": 2}, {"epochs": 2}, {"admission": BoundedLag(1)}):
            assert warnings_of(make_run(losses=(loss,), **moving)) == []
    assert warnings_of(make_run(losses=(Gspo(),), trainer=TurnByTurn(TorchTrainer()))) == []  # a step for each turn
    assert warnings_of(make_run(losses=(Clip(),))) == []  # on policy that is GRPO as published


def test_adapters_learn_ten_times_as_fast_and_that_is_said() -> None:
    (said,) = warnings_of(make_run(trainer=TorchTrainer(learning_rate=2e-5, lora=32)))
    assert "rank 32 learn with 10 times" in said and "0.0002 in place of 2e-05" in said
    assert "learning_rate=2e-06 makes it 2e-05" in said


def test_no_recipe_holds_a_ratio_that_is_always_1() -> None:
    assert {name for name, run in every_run().items() if any(DISTANT in said for said in warnings_of(run))} == set()


def test_a_critic_that_is_asked_is_no_idle_part() -> None:
    assert warnings_of(ppo()) == [] and warnings_of(rl4lms()) == []
    with pytest.raises(ConfigurationError, match="Gae needs a value model"):
        check(replace(ppo(), values=None))


def test_a_student_is_not_its_own_teacher(tmp_path: Path) -> None:
    student, other = save_pocket_like(tmp_path / "student"), save_pocket_like(tmp_path / "other", seed=1)
    copied = shutil.copytree(student, tmp_path / "copied")
    for recipe in (kdrl, distillation):
        for teacher in (student, copied):
            with pytest.raises(ConfigurationError, match=r"student's own weights.*checkpoints/step-100"):
                check(recipe(Setting(model=str(student)), teacher=str(teacher)))
        check(recipe(Setting(model=str(student)), teacher=str(other)))
        with pytest.raises(ModelError, match="nowhere does not exist"):
            check(recipe(Setting(model=str(student)), teacher=str(tmp_path / "nowhere")))
    with pytest.raises(ConfigurationError, match=r"distillation needs teacher=.*runs/NAME/checkpoints"):
        build(distillation, {})


def test_more_minibatches_than_groups_says_what_to_do() -> None:
    with pytest.raises(ConfigurationError, match=r"2 groups into 4 minibatches: raise groups_per_step, or set"):
        check(make_run(groups_per_step=2, minibatches=4))


@pytest.mark.parametrize("recipe", ["dots_rr", "gdro", "vade", "seele", "sfl", "prioritized_level_replay", "adcl_egsr"])
def test_pools_take_all_rows_of_a_table_or_say_which_they_leave(tmp_path: Path, recipe: str) -> None:
    row = '{{"question": "{0}+1=?", "solution": "Count on from {0} by one.", "answer": "{0}"}}\n'
    (tmp_path / "rows.jsonl").write_text("".join(row.format(n) for n in range(400)))
    known = {"env": str(tmp_path / "rows.jsonl"), "columns": ("question", "answer")}
    field = "pool" if recipe == "dots_rr" else "tasks"
    assert not any("and no others" in each for each in warnings_of(build(recipe_named(recipe), known)))
    few = warnings_of(build(recipe_named(recipe), known | {field: 100}))
    assert any("samples the first 100 of 3" in each and "tasks of rows and no others" in each for each in few)
