"""Experts that an engine chose are kept with the turn and taken again in training: then both compute the same."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from transformers import AutoModelForCausalLM, MixtralConfig

from strop.backends import EXPERTS, Completion, Stop
from strop.errors import ConfigurationError
from strop.generate.engines.cpu.torch_engine import TorchEngine
from strop.generate.engines.paged.paged_engine import PagedEngine
from strop.generate.engines.wrappers.chunked import joined
from strop.generate.turn_ops import extended, read_to_the_end
from strop.kernels.experts import by_expert, mixed, on_all_rows, route
from strop.launch.running.launch import launch
from strop.recipes import build, recipe_named
from strop.storage.ledger.ledger import Ledger
from strop.training.machine.packed_sequences import Sequences
from strop.training.pack import pack
from strop.training.reductions.means import TokenMean
from strop.training.requirements import Logprobs
from strop.training.trainers.torch import TorchTrainer
from strop.types import Group, IntArray, Message, Sampling, Turn
from strop.weights.channels.memory import Memory
from tests.generate.engines.asking import asked, prompts_of
from tests.tiny_models import save_pocket_like, save_tokenizer
from tests.training.test_adapted import spread
from tests.training.tiny import make_rollout

LAYERS, EACH = 3, 2


@pytest.fixture(scope="module")
def tied(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Every expert has a twin that the router likes as well, but for the last bits, and that computes otherwise."""
    folder = tmp_path_factory.mktemp("tied")
    torch.manual_seed(0)
    config = MixtralConfig(
        vocab_size=40, hidden_size=32, intermediate_size=24, num_hidden_layers=LAYERS, num_attention_heads=4,
        num_key_value_heads=2, head_dim=16, max_position_embeddings=96, num_local_experts=6, num_experts_per_tok=EACH,
        sliding_window=None, initializer_range=0.2, bos_token_id=0, eos_token_id=None,
    )  # fmt: skip
    model = AutoModelForCausalLM.from_config(config)
    for layer in model.model.layers:
        router = layer.mlp.gate.weight.data
        router[2:] = router[2:4].repeat(2, 1) + torch.randn(4, 32) * 1e-8  # the second and third choice are near
        router[0] = router[2:4].sum(0)  # and one is before them
    model.save_pretrained(folder)
    save_tokenizer(folder)
    return folder


def turns_of(prompts: list[IntArray], written: list[Completion]) -> list[Turn]:
    nothing = Completion(np.zeros(0, np.int64), np.zeros(0, np.float32), np.zeros(0, np.int64), Stop.STOP)
    turns = []
    for prompt, done in zip(prompts, written, strict=True):
        begun = Turn(prompt, nothing.tokens, nothing.logprobs, nothing.versions, Message("assistant", ""), Sampling())
        aux = extended(begun, done.aux, len(done.tokens))
        told = replace(begun, tokens=done.tokens, logprobs=done.logprobs, versions=done.versions, aux=aux)
        turns.append(told)
    return turns


def scored(folder: Path, turns: list[Turn]) -> np.ndarray:
    """What the trainer makes of tokens that were sampled."""
    trainer = TorchTrainer(chunk=16, fused="on")
    trainer.open(folder, 0)
    return scored_by(trainer, turns)


def scored_by(trainer: TorchTrainer, turns: list[Turn]) -> np.ndarray:
    rollouts = [make_rollout(str(i), [turn], advantage=1.0) for i, turn in enumerate(turns)]
    (batch,) = pack([Group(0, rollouts[0].task, rollouts)], TokenMean(), 0, 10_000)
    trainer.annotate([batch], frozenset({Logprobs("proximal")}))
    return batch.logprobs["proximal"][batch.trainable].numpy()


@pytest.mark.parametrize("kind", ["torch", "paged"])
def test_engine_and_trainer_agree_where_routes_are_taken_again(tied: Path, kind: str) -> None:
    engine: Any = TorchEngine(rows=3) if kind == "torch" else PagedEngine(rows=3, device="cpu", dtype="float32")
    engine.open(tied)
    prompts = prompts_of([3, 9, 30, 1, 17, 22])
    prompts += [prompts[2], np.append(prompts[2][:20], 7)]  # a sibling, and one that branches off
    turns = turns_of(prompts, asked(engine, prompts, Sampling(max_tokens=20)))
    sampled = np.concatenate([turn.logprobs for turn in turns])
    for turn in turns:
        routes = turn.aux[EXPERTS]
        assert routes.shape == (len(turn.prompt) + len(turn.tokens), LAYERS * EACH)
        assert (routes[:-1] > 0).all() and (routes[-1] == 0).all()  # the last token was never computed
    assert np.abs(scored(tied, turns) - sampled).max() < 1e-5
    # without them, some second choices are the other twin's, here or in the context
    assert np.abs(scored(tied, [replace(turn, aux={}) for turn in turns]) - sampled).max() > 1e-2


def test_adapters_stand_beside_all_but_experts(tied: Path) -> None:
    trainer = TorchTrainer(chunk=16, fused="on", lora=4)
    engine, channel = PagedEngine(rows=3, device="cpu", dtype="float32"), Memory()
    trainer.open(tied, 0)
    channel.connect(trainer, [engine])
    engine.open(tied)
    assert trainer._opened is not None
    spread(trainer._opened.model)
    prompts = prompts_of([3, 9, 30])

    async def written() -> list[Completion]:
        await channel.publish(1)
        return [await engine.sample(prompt, Sampling(max_tokens=20), key) for key, prompt in enumerate(prompts)]

    turns = turns_of(prompts, asyncio.run(written()))
    sampled = np.concatenate([turn.logprobs for turn in turns])
    assert np.abs(scored_by(trainer, turns) - sampled).max() < 1e-5
    assert np.abs(scored(tied, turns) - sampled).max() > 1e-2  # so they act
    with pytest.raises(ConfigurationError, match="does not reach experts"):
        TorchTrainer(fused="on", lora=4, base="nf4").open(tied, 0)


def test_routes_of_another_shape_are_nothing_to_a_model(tied: Path) -> None:
    """A teacher that is no such model reads the same batch."""
    prompt, tokens = np.array([4, 5, 6]), np.array([7, 8, 9])
    turn = Turn(prompt, tokens, np.zeros(3, np.float32), np.zeros(3, np.int64), Message("assistant", ""), Sampling())
    foreign = replace(turn, aux={EXPERTS: np.ones((6, 7), np.int16)})
    assert np.array_equal(scored(tied, [turn]), scored(tied, [foreign]))


def test_a_reference_and_a_teacher_choose_experts_of_their_own(tied: Path) -> None:
    """Their weights are of the policy's shape, here even the same; the routes are those that nobody would take."""
    prompt, tokens = np.array([4, 5, 6]), np.array([7, 8, 9, 7])
    turn = Turn(prompt, tokens, np.zeros(4, np.float32), np.zeros(4, np.int64), Message("assistant", ""), Sampling())
    told = replace(turn, aux={EXPERTS: np.tile(np.array([5, 6], np.int16), (7, LAYERS))})
    trainer = TorchTrainer(chunk=16, fused="on")
    trainer.open(tied, 0)
    rollout = make_rollout("a", [told], advantage=1.0)
    (batch,) = pack([Group(0, rollout.task, [rollout])], TokenMean(), 0, 100)
    trainer.annotate([batch], frozenset(Logprobs(policy) for policy in ("proximal", "reference", str(tied))))
    plain = scored(tied, [turn])
    for policy in ("reference", str(tied)):
        np.testing.assert_allclose(batch.logprobs[policy][batch.trainable], plain, atol=1e-6)
    assert np.abs(batch.logprobs["proximal"][batch.trainable].numpy() - plain).max() > 1e-2


def test_experts_by_hand() -> None:
    """Two of three experts of one number each: router logits 2, 1 and 0 for a state of 1."""
    router, state = torch.tensor([[2.0], [1.0], [0.0]]), torch.tensor([[1.0]])
    gate_up, down = (
        torch.tensor([[[1.0], [2.0]], [[0.5], [4.0]], [[0.0], [0.0]]]),
        torch.tensor([[[3.0]], [[5.0]], [[0]]]),
    )
    chosen, weights = route(state, router, 2, is_normalised=True)
    share = np.exp(2) / (np.exp(2) + np.exp(1))
    assert chosen.tolist() == [[0, 1]] and weights.tolist() == [pytest.approx([share, 1 - share])]
    silu = [1 / (1 + np.exp(-1)), 0.5 / (1 + np.exp(-0.5))]
    wanted = share * silu[0] * 2 * 3 + (1 - share) * silu[1] * 4 * 5
    assert mixed(state, chosen, weights, gate_up, down).item() == pytest.approx(wanted)
    taken, told = route(state.repeat(2, 1), router, 2, is_normalised=False, taken=torch.tensor([[2, -1], [3, 2]]))
    probabilities = np.exp([2, 1, 0]) / np.exp([2, 1, 0]).sum()
    assert taken.tolist() == [[2, 1], [0, 2]] and told[0].tolist() == pytest.approx(
        [probabilities[2], probabilities[1]]
    )


def test_grouped_products_are_those_of_each_expert() -> None:
    rows, experts, counts = torch.randn(9, 16).bfloat16(), torch.randn(4, 8, 16).bfloat16(), torch.tensor([3, 0, 5, 1])
    grouped = torch._grouped_mm(rows, experts.transpose(1, 2), offs=counts.cumsum(0).to(torch.int32))
    torch.testing.assert_close(by_expert(rows, experts, counts), grouped, rtol=1e-2, atol=1e-2)
    torch.testing.assert_close(on_all_rows(rows, experts, counts), grouped, rtol=1e-2, atol=1e-2)


def test_a_prefix_is_shared_only_where_its_experts_are() -> None:
    tokens, positions = torch.tensor([5, 6, 7, 5, 6, 8, 5, 6, 9]), torch.arange(3).repeat(3)
    routes = torch.tensor([1, 2, 0, 1, 2, 0, 1, 3, 0]).unsqueeze(1)
    assert Sequences(tokens, positions, [3, 3, 3], "cpu").num_computed == 2
    assert Sequences(tokens, positions, [3, 3, 3], "cpu", routes).num_computed == 3


def test_pieces_and_later_turns_keep_their_own_rows() -> None:
    def wrote(count: int, context: list[int]) -> Completion:
        routes = np.array(context, np.int16)[:, None]
        return Completion(
            np.arange(count), np.zeros(count, np.float32), np.zeros(count, np.int64), Stop.STOP, {EXPERTS: routes}
        )

    first, second = wrote(2, [1, 2, 3, 0]), wrote(1, [1, 2, 3, 4, 0])
    assert joined([first, second], Stop.STOP).aux[EXPERTS].ravel().tolist() == [1, 2, 3, 4, 0]
    begun = Turn(np.arange(2), *(np.zeros(0, t) for t in (np.int64, np.float32, np.int64)), Message("assistant", ""))
    # five tokens of earlier turns stand before this one's prompt, the last of which is read only now
    later = wrote(2, [9] * 4 + [8, 1, 2, 3, 0]).aux
    assert extended(begun, later, 2)[EXPERTS].ravel().tolist() == [1, 2, 3, 0]
    earlier = replace(begun, tokens=np.arange(3), aux={EXPERTS: np.array([[9], [9], [9], [9], [0]], np.int16)})
    assert read_to_the_end(earlier, later, 4).aux[EXPERTS].ravel().tolist() == [9, 9, 9, 9, 8]


def test_a_run_keeps_routes_in_its_ledger(tmp_path: Path) -> None:
    model = save_pocket_like(tmp_path / "model", experts=4)
    values = {"model": str(model), "steps": 1, "groups_per_step": 2, "group_size": 2, "max_tokens": 6}
    run = build(recipe_named("grpo"), values | {"heldout_tasks": 2, "heldout_every": 0})
    launch(replace(run, rescore_every=1), tmp_path, "run")
    turns = [
        turn
        for group in Ledger(tmp_path / "run/ledger.db").trained_groups(1)
        for a in group.rollouts
        for turn in a.turns
    ]
    assert len(turns) == 4 and all((turn.aux[EXPERTS][:-1] > 0).all() for turn in turns)
