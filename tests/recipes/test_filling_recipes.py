"""d1 and TraceRL: the whole way from the bundled model to one that fills masks and learns by reward.

Papers: d1, tracerl
"""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from pathlib import Path

import pytest

from strop.cli.models import open_policy
from strop.errors import ConfigurationError, ModelError
from strop.filter.gates.accuracy_band import AccuracyBand
from strop.filter.rewards.controls import Coin
from strop.generate.engines.cpu.torch_engine import TorchEngine
from strop.generate.engines.diffusion.diffusion_engine import DiffusionEngine
from strop.generate.strategies.padded_demonstrations import Padded
from strop.launch.checks.preflight import check
from strop.launch.checks.warnings import warnings_of
from strop.launch.running.launch import launch
from strop.recipes.classics.grpo import grpo
from strop.recipes.classics.ppo import ppo
from strop.recipes.objective.d1 import AllHidden, d1
from strop.recipes.objective.tracerl import CanvasCritic, tracerl
from strop.recipes.rollout.ead import AnnealedTemperature
from strop.recipes.setting import Setting
from strop.storage.run_folder import read_rows
from strop.training.advantages.gae import Gae
from strop.training.advantages.group_relative import GroupMean
from strop.training.advantages.trace_returns import TraceReturns
from strop.training.corrections.importance_weights import Clamped
from strop.training.losses.clip import Clip
from strop.training.losses.kl import Kl
from strop.training.pack import pack
from strop.training.reductions.means import ConstantLength, TokenMean
from strop.training.requirements import Logprobs
from strop.training.step_scales.effective_sample_size import EffectiveSampleSize
from strop.training.trainers.torch import TorchTrainer
from strop.training.views.diffusion_views import Corrupted, InOrder
from strop.types import Group, Message, Outcome, Rollout, Sampling, Start, Task
from tests.recipes.going_on import SIZES, acts_and_goes_on
from tests.tiny_models import save_pocket_like

SMALL = {"steps": 2, "groups_per_step": 2, "group_size": 3, "heldout_tasks": 4, "max_tokens": 12, "checkpoint_every": 1}


def small(model: Path, **fields: object) -> Setting:
    return Setting(env="arithmetic:1", model=str(model), **{**SMALL, **fields})  # type: ignore[arg-type]


def test_the_parts_of_d1() -> None:
    run = d1(Setting(max_tokens=32))
    assert isinstance(run.trainer, TorchTrainer) and run.trainer.view == AllHidden(0.15)
    assert run.trainer.clip_norm == 0.2 and run.epochs == 12 and run.minibatches == 1
    assert run.losses == (Clip(0.5, 0.5, anchor="proximal"), Kl("k3", 0.04)) and isinstance(run.advantage, GroupMean)
    assert isinstance(run.engine, DiffusionEngine) and (run.engine.least, run.engine.sure) == (2, 1.0)
    warmup = run.warmup
    assert warmup is not None and isinstance(warmup.trainer, TorchTrainer) and warmup.trainer.view == Corrupted()
    assert isinstance(warmup.strategy, Padded) and warmup.strategy.size == 32
    assert d1(Setting(), shown=0).warmup is None


def test_the_parts_of_tracerl() -> None:
    run = tracerl(merged=4)
    assert isinstance(run.trainer, TorchTrainer) and run.trainer.view == InOrder(4)
    assert run.advantage == TraceReturns(1.0, 1.0, merged=4)
    assert isinstance(run.values, CanvasCritic) and run.values.view == InOrder(4)
    assert run.losses == (Clip(0.2, 0.2, anchor="proximal"), Kl("k3", 0.01, policy="proximal"))
    assert isinstance(run.engine, DiffusionEngine) and (run.engine.least, run.engine.sure) == (1, 0.9)
    assert run.gates == (AccuracyBand(0.2, 0.8),) and run.reduction == ConstantLength(32) and run.minibatches == 4
    assert run.trainer.clip_norm == 1.0 and run.correction == Clamped(1.0, 1.0, target="proximal")
    assert tracerl(critic=False).values is None


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small model, shown a little, then d1."""
    root = tmp_path_factory.mktemp("runs")
    model = save_pocket_like(root / "model", layers=2)
    launch(d1(small(model), epochs=2, shown=3), root, "d1")
    return root / "d1"


def test_tokens_are_proven_in_the_order_they_came_in(trained: Path) -> None:
    rows = read_rows(trained / "metrics.jsonl")
    proofs = [row["rescored_difference"] for row in rows if "rescored_difference" in row]
    assert proofs and max(proofs) < 1e-5
    assert all(row["drift"] > 0.01 for row in rows if "drift" in row)  # the estimate is another number


def test_what_comes_of_it_says_what_it_is_and_is_opened_so(trained: Path) -> None:
    folder = trained / "checkpoints" / "step-2"
    config = json.loads((folder / "config.json").read_text())
    assert (config["mask_token_id"], config["canvas_places"]) == (0, 12)
    policy = open_policy(folder, Sampling(max_tokens=128))
    assert isinstance(policy.engine, DiffusionEngine) and policy.sampling.max_tokens == 12
    with pytest.raises(ModelError, match="fills masks"):
        TorchEngine().open(folder)
    with pytest.raises(ConfigurationError, match="fills masks"):
        check(grpo(Setting(model=str(folder))))


@pytest.mark.parametrize("kind", ["d1", "tracerl"])
def test_it_acts_and_goes_on_to_the_same_bits(kind: str, tmp_path: Path) -> None:
    """A coin pays, since a random model is never right."""
    setting = Setting(env="arithmetic:1", model=str(save_pocket_like(tmp_path / "model")), **SIZES)  # type: ignore[arg-type]
    run = d1(setting, epochs=2, shown=2) if kind == "d1" else tracerl(setting, shown=2, minibatches=2)
    metrics = ("kl", "reference_kl") if kind == "d1" else ("kl", "proximal_kl", "advantage_within")
    rows = acts_and_goes_on(replace(run, rewards=(Coin(),), gates=()), tmp_path, dict.fromkeys(metrics, 0.0))
    assert kind == "d1" or all(row["value_grad_norm"] > 0 for row in rows)


def test_engine_and_trainer_belong_together() -> None:
    run = d1(Setting(), shown=0)
    with pytest.raises(ConfigurationError, match="belong together"):
        check(replace(run, engine=TorchEngine()))
    with pytest.raises(ConfigurationError, match="belong together"):
        check(replace(run, trainer=TorchTrainer()))
    with pytest.raises(ConfigurationError, match="an end token alone"):
        check(replace(run, sampling=replace(run.sampling, stop=("</think>",))))
    with pytest.raises(ConfigurationError, match="in pieces"):
        check(replace(run, engine=AnnealedTemperature(run.engine)))
    with pytest.raises(ConfigurationError, match="take CanvasCritic"):
        check(replace(run, values=ppo(Setting()).values))
    traced = tracerl(Setting(), shown=0)
    with pytest.raises(ConfigurationError, match="TraceReturns merges 3 steps and InOrder 1"):
        check(replace(traced, advantage=TraceReturns(merged=3)))
    with pytest.raises(ConfigurationError, match="take TraceReturns"):
        check(replace(traced, advantage=Gae()))


def test_an_estimate_is_not_compared_with_what_was_drawn(tmp_path: Path) -> None:
    run = d1(Setting(), shown=0)
    with pytest.raises(ConfigurationError, match="Clip compares with the logprobs"):
        check(replace(run, losses=(Clip(),), correction=None))
    with pytest.raises(ConfigurationError, match="Clamped compares with the logprobs"):
        check(replace(run, correction=Clamped(target="proximal")))
    assert isinstance(run.trainer, TorchTrainer)
    with pytest.raises(ConfigurationError, match="EffectiveSampleSize compares with the logprobs"):
        check(replace(run, trainer=replace(run.trainer, step_scale=EffectiveSampleSize())))
    check(replace(run, losses=(Clip(),), correction=None, trainer=replace(run.trainer, view=InOrder(1))))


def test_another_model_that_is_asked_must_fill_masks_too(tmp_path: Path) -> None:
    run, other = d1(Setting(), shown=0), save_pocket_like(tmp_path)
    assert isinstance(run.trainer, TorchTrainer)
    asking = replace(run, trainer=replace(run.trainer, reference=str(other)))
    with pytest.raises(ConfigurationError, match="names no mask_token_id"):
        check(asking)
    model_that_fills(other)
    check(asking)


def test_several_turns_fill_several_canvases(tmp_path: Path) -> None:
    """What was heard stands before the next canvas, when it is filled and when it is judged; one completion is
    begun.
    """
    model = save_pocket_like(tmp_path, layers=2)
    policy = open_policy(model_that_fills(model), Sampling(max_tokens=10, temperature=0.8))
    task = Task((Message("user", "1+1=?"),), "2", "test")
    talk = policy.dialogue(task, Start("a", 5))

    async def said() -> None:
        await talk.completion()
        talk.hear([Message("user", "again")])
        talk.begin("so")
        await talk.completion(Sampling(max_tokens=7))

    asyncio.run(said())
    rollout = Rollout("a", task, talk.turns, Outcome.FINISHED)
    rollout.set_advantage(1.0)
    trainer = TorchTrainer(view=InOrder(1))
    trainer.open(model, 0)
    (batch,) = pack([Group(0, task, [rollout])], TokenMean(), 0, 4096)
    trainer.annotate([batch], frozenset({Logprobs("proximal")}))
    difference = (batch.logprobs["proximal"] - batch.behavior_logprobs)[batch.trainable]
    assert len(difference) == rollout.num_tokens > 2 and float(difference.abs().max()) < 1e-5


def model_that_fills(folder: Path) -> Path:
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "mask_token_id": 0}))
    return folder


def test_whoever_listens_hears_the_completion_that_one_request_gets(tmp_path: Path) -> None:
    """In pieces each would be a canvas of its own, with as much room as the piece."""
    policy = open_policy(model_that_fills(save_pocket_like(tmp_path)), Sampling(max_tokens=20))
    task = Task((Message("user", "1+1=?"),), "2", "test")
    heard: list[int] = []
    plain, told = (policy.dialogue(task, Start("a", 5)) for _ in range(2))
    asyncio.run(plain.completion())
    asyncio.run(told.completion(tell=lambda tokens: heard.extend(tokens.tolist())))
    assert told.last.tokens.tolist() == plain.last.tokens.tolist() == heard
    with pytest.raises(ConfigurationError, match="pausing rollouts needs"):
        asyncio.run(policy.dialogue(task, Start("a", 5, pause=3)).completion())


def test_several_ranks_read_canvases_too(tmp_path: Path) -> None:
    model = save_pocket_like(tmp_path / "model")
    run = tracerl(small(model, steps=1, ranks=2, checkpoint_every=1), shown=0, minibatches=1)
    launch(replace(run, gates=()), tmp_path, "ranks")
    proofs = [row["rescored_difference"] for row in read_rows(tmp_path / "ranks/metrics.jsonl") if row["step"] == 1]
    assert proofs[0] < 1e-5
    assert json.loads((tmp_path / "ranks/checkpoints/step-1/config.json").read_text())["mask_token_id"] == 0


def test_a_model_that_nobody_teaches_is_doubted(tmp_path: Path) -> None:
    model = save_pocket_like(tmp_path)
    setting = Setting(env="arithmetic:1", model=str(model))
    assert any("nothing teaches it" in warning for warning in warnings_of(d1(setting, shown=0)))
    taught = d1(setting, shown=2)
    assert taught.warmup is not None
    model_that_fills(model)
    for run in (taught, taught.warmup, d1(setting, shown=0), grpo(Setting())):
        assert not any("nothing teaches it" in warning for warning in warnings_of(run))
