"""Two ranks do what one does: the same steps but for rounding, the same checkpoints, and no hang when one dies."""

from __future__ import annotations

import asyncio
import os
import pickle
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
import torch
from torch import Tensor

from strop.errors import CheckpointError, ConfigurationError, NumericsError, RankError
from strop.launch.running.launch import launch
from strop.recipes import build, recipe_named
from strop.storage import checkpoint
from strop.training.batch import Batch
from strop.training.losses.clip import Clip
from strop.training.losses.entropy import Entropy
from strop.training.losses.kl import Kl
from strop.training.losses.preference_pairs import Dpo
from strop.training.objective import Objective
from strop.training.pack import pack
from strop.training.reductions.means import SequenceMean, TokenMean
from strop.training.requirements import Logprobs
from strop.training.step_scales.effective_sample_size import EffectiveSampleSize
from strop.training.trainers.ranks import Ranks
from strop.training.trainers.torch import TorchTrainer
from strop.types import Metrics
from tests.tiny_models import save_pocket_like
from tests.training.test_trainer import _Explosive
from tests.training.tiny import random_groups, save_gpt2, save_llama

INNER = TorchTrainer(
    learning_rate=1e-2, chunk=16, warmup_steps=2, weight_decay=0.1, max_tokens=30, step_scale=EffectiveSampleSize()
)
OBJECTIVE = Objective((Clip(), Entropy(weight=0.1), Kl()))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_llama(tmp_path_factory.mktemp("llama"), is_tied=True)


@pytest.fixture(scope="module")
def crew(folder: Path) -> Iterator[Ranks]:
    """One for the whole file: starting processes takes longer than all tests."""
    trainer = Ranks(INNER, ranks=2, seconds=60)
    trainer.open(folder, 0)
    yield trainer
    asyncio.run(trainer.close())


def alone(folder: Path) -> TorchTrainer:
    trainer = replace(INNER, fused="off")  # which the ranks are, so that their bits are close
    trainer.open(folder, 0)
    return trainer


def batches_of(trainer: TorchTrainer | Ranks, objective: Objective = OBJECTIVE, seed: int = 0) -> list[Batch]:
    batches = pack(random_groups(4, 2, seed), SequenceMean(), 0, trainer.max_tokens, objective.scope)
    trainer.annotate(batches, objective.needs)
    return batches


def stepped(trainer: TorchTrainer | Ranks, seed: int, objective: Objective = OBJECTIVE) -> Metrics:
    return trainer.step(batches_of(trainer, objective, seed), objective)


def copied(trainer: TorchTrainer | Ranks) -> dict[str, Tensor]:
    return {name: tensor.clone() for name, tensor in trainer.weights().items()}


def distance(one: dict[str, Tensor], other: dict[str, Tensor]) -> float:
    """The largest relative difference of a weight matrix; a bias that never moved is 0 in both."""
    assert one.keys() == other.keys()
    return max(float((one[name] - other[name]).norm() / other[name].norm().clamp(min=1e-9)) for name in one)


def same_bits(one: dict[str, Tensor], other: dict[str, Tensor]) -> bool:
    return one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)


@pytest.mark.parametrize("objective", [OBJECTIVE, Objective((Dpo(), Entropy(weight=0.1)))])
def test_two_ranks_take_the_steps_of_one(crew: Ranks, folder: Path, objective: Objective) -> None:
    crew.open(folder, 0)
    one = alone(folder)
    before = copied(one)
    for seed in range(3):
        expected, found = stepped(one, seed, objective), stepped(crew, seed, objective)
        assert found.keys() == expected.keys()
        assert found == pytest.approx(expected, rel=1e-4, abs=1e-6)
    assert distance(crew.weights(), one.weights()) < 1e-5  # Adam's first steps enlarge what sums are rounded by
    assert distance(before, one.weights()) > 1e-3  # they have moved


def test_gpt2_and_a_rank_without_a_token_to_train(crew: Ranks, tmp_path: Path) -> None:
    folder = save_gpt2(tmp_path)
    one = alone(folder)
    crew.open(folder, 0)
    batches = pack(random_groups(1, 1), TokenMean(), 0, 1000)  # one rollout for two ranks
    assert len(batches) == 1
    objective = Objective((Clip(),))
    assert crew.step(batches, objective) == pytest.approx(one.step(batches, objective), rel=1e-4, abs=1e-6)
    assert distance(crew.weights(), one.weights()) < 1e-6


def test_annotated_logprobs_are_those_of_one_rank(crew: Ranks, folder: Path) -> None:
    crew.open(folder, 0)
    one = alone(folder)
    stepped(crew, 0), stepped(one, 0)
    both = frozenset({Logprobs("reference"), Logprobs("proximal")})
    batches = [pack(random_groups(5, 3), TokenMean(), 0, 60) for _ in range(2)]
    crew.annotate(batches[0], both)
    one.annotate(batches[1], both)
    for found, expected in zip(*batches, strict=True):
        torch.testing.assert_close(found.logprobs["reference"], expected.logprobs["reference"])
        torch.testing.assert_close(found.logprobs["proximal"], expected.logprobs["proximal"], rtol=1e-5, atol=1e-4)
        assert not torch.equal(found.logprobs["reference"], found.logprobs["proximal"])


def test_resumed_to_the_same_bits_and_a_checkpoint_moves_between_one_and_two(
    crew: Ranks, folder: Path, tmp_path: Path
) -> None:
    crew.open(folder, 0)
    stepped(crew, 0)
    crew.save(tmp_path)
    saved = copied(crew)
    expected = [stepped(crew, seed) for seed in (1, 2)]
    weights = copied(crew)
    crew.resume(tmp_path)
    assert same_bits(saved, crew.weights())
    assert [stepped(crew, seed) for seed in (1, 2)] == expected
    assert same_bits(weights, crew.weights())

    one = alone(folder)
    one.resume(tmp_path)
    assert same_bits(saved, copied(one))
    for seed in (1, 2):
        stepped(one, seed)
    assert distance(one.weights(), weights) < 1e-6
    (tmp_path / "back").mkdir()
    one.save(tmp_path / "back")
    expected_next = stepped(one, 3)
    crew.resume(tmp_path / "back")
    assert stepped(crew, 3) == pytest.approx(expected_next, rel=1e-4, abs=1e-6)
    assert distance(crew.weights(), one.weights()) < 1e-6


def test_it_writes_the_files_that_one_rank_writes(crew: Ranks, folder: Path, tmp_path: Path) -> None:
    folders = [tmp_path / "one", tmp_path / "two"]
    for each, trainer in zip(folders, (alone(folder), crew), strict=True):
        each.mkdir()
        if trainer is crew:
            trainer.open(folder, 0)
        trainer.save(each)
    names = [sorted(path.name for path in each.iterdir()) for each in folders]
    assert names[0] == names[1]
    assert all((folders[0] / name).read_bytes() == (folders[1] / name).read_bytes() for name in names[0])


@dataclass
class Holder:
    """As much of a run as a checkpoint needs."""

    trainer: Ranks


def test_a_checkpoint_holds_its_weights_once(crew: Ranks, folder: Path, tmp_path: Path) -> None:
    crew.open(folder, 0)
    saved = copied(crew)
    written = checkpoint.write(tmp_path, 1, Holder(crew), {"policy_statistic": 1})
    assert not [path for path in written.iterdir() if path.is_dir()]  # none for the inner trainer
    stepped(crew, 0)
    assert not same_bits(saved, crew.weights())
    groups = {group.number: group for group in random_groups(4)}
    assert checkpoint.read(written, Holder(crew), groups.__getitem__) == {"policy_statistic": 1}
    assert same_bits(saved, crew.weights())


@pytest.mark.parametrize("is_finite", [False, True])
def test_numbers_that_are_not_finite_touch_nothing_and_name_the_tasks(
    crew: Ranks, folder: Path, is_finite: bool
) -> None:
    crew.open(folder, 0)
    stepped(crew, 0)
    before = copied(crew)
    batches = pack(random_groups(4), TokenMean(), 0, 1, scope="group")
    with pytest.raises(NumericsError, match=r"step 2: .* 1 of 4 batches, with tasks task-2; the weights were not"):
        crew.step(batches, Objective((_Explosive("task-2", is_finite),)))
    assert same_bits(before, crew.weights())
    after = stepped(crew, 1)
    assert after["learning_rate"] == pytest.approx(1e-2 * after["step_scale"])


def test_misuse_is_refused_and_the_ranks_live_on(crew: Ranks, folder: Path, tmp_path: Path) -> None:
    crew.open(folder, 0)
    with pytest.raises(CheckpointError, match="cannot read the model"):
        crew.resume(tmp_path / "nowhere")
    with pytest.raises(ConfigurationError, match="not teacher"):
        crew.annotate([], frozenset({"teacher"}))
    with pytest.raises(ConfigurationError, match="at least 1 batch, got 0"):
        crew.step([], OBJECTIVE)
    with pytest.raises(ConfigurationError, match="call open"):
        Ranks().weights()
    with pytest.raises(ConfigurationError, match="ranks >= 1, got 0"):
        Ranks(ranks=0)
    crew.open(folder, 0)
    assert stepped(crew, 0)["loss"] != 0


def test_its_settings_travel() -> None:
    trainer = Ranks(TorchTrainer(learning_rate=3e-4), ranks=3)
    assert eval(repr(trainer)) == trainer and trainer.max_tokens == 3 * 4096
    assert pickle.loads(pickle.dumps(trainer)) == trainer


def test_ranks_tell_what_they_are_doing(crew: Ranks, folder: Path) -> None:
    crew.open(folder, 0)
    deadline = time.monotonic() + 20
    told = crew.stacks()
    while told.count("in take") < 2 and time.monotonic() < deadline:  # having answered, a rank gets there soon
        told = crew.stacks()
    assert "rank 0" in told and "rank 1" in told and told.count("in take") == 2
    assert Ranks().stacks() == "no process\n"


_STARTS_RANKS = """
import sys, time
from strop.training.machine.rank_processes import Crew
from strop.training.trainers.torch import TorchTrainer
crew = Crew(TorchTrainer(), 2, 600.0, 0)
print(crew.scratch, *(rank._process.pid for rank in crew._ranks), flush=True)
time.sleep(600)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="looks for processes in /proc")
def test_no_rank_outlives_its_trainer_though_it_waits_for_another() -> None:
    parent = subprocess.Popen([sys.executable, "-c", _STARTS_RANKS], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    scratch, *ranks = parent.stdout.readline().split()
    os.kill(int(ranks[1]), signal.SIGKILL)  # the other one waits for it, up to 600 s
    time.sleep(3.0)
    parent.kill()
    parent.wait()
    parent.stdout.close()
    for _ in range(900):  # on a busy machine it may still be starting
        if not Path(f"/proc/{ranks[0]}").exists() and not Path(scratch).exists():
            break
        time.sleep(0.1)
    assert not Path(f"/proc/{ranks[0]}").exists() and not Path(scratch).exists()


def test_a_whole_run_trains_with_them(tmp_path: Path) -> None:
    values = {
        "model": str(save_pocket_like(tmp_path / "model")),
        "ranks": 2,
        "steps": 1,
        "groups_per_step": 2,
        "group_size": 2,
        "max_tokens": 4,
    }
    run = build(recipe_named("grpo"), values | {"heldout_tasks": 2, "heldout_every": 0})
    assert launch(run, tmp_path, "run")["is_complete"]


def test_a_dead_rank_is_named_with_its_last_words_and_nothing_hangs(crew: Ranks, folder: Path) -> None:
    """Last in this file: it ends the processes that all tests share."""
    crew.open(folder, 0)
    batches = batches_of(crew)
    assert crew._crew is not None
    ranks, scratch = crew._crew._ranks, crew._crew.scratch
    assert ranks[1]._words is not None
    ranks[1]._words.write(b"out of memory, perhaps\n")
    ranks[1]._words.flush()
    os.kill(ranks[1]._process.pid, signal.SIGKILL)
    begin = time.monotonic()
    with pytest.raises(RankError, match=r"(?s)rank 1 of 2 died \(signal SIGKILL\) when told to step\n.*out of memory"):
        crew.step(batches, OBJECTIVE)
    assert time.monotonic() - begin < 15
    assert not any(rank.is_alive for rank in ranks) and not scratch.exists()
    with pytest.raises(RankError, match="no ranks left to weights"):
        crew.weights()
