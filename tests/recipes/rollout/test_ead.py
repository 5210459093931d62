"""EAD: temperatures by hand, logprobs of what was really sampled from, and a run in which completions cool down."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from math import exp, log
from pathlib import Path

import numpy as np
import pytest
import torch

from strop.backends import Completion, Stop
from strop.errors import ConfigurationError
from strop.generate.engines.scripted import Scripted
from strop.launch.checks.preflight import check
from strop.recipes import build, recipe_named
from strop.recipes.rollout.ead import ANNEALED, TEMPERATURE, Annealed, AnnealedTemperature
from strop.types import IntArray, Sampling
from tests.generate.engines.asking import opened, prompts_of
from tests.generate.strategies.flowing import Counting, flown
from tests.tiny_models import load_reference, reference_logprobs, save_pocket_like, save_tiny_model


def engine(**fields: float) -> AnnealedTemperature:
    return AnnealedTemperature(Scripted({}), **fields)  # type: ignore[arg-type]


def test_temperatures_by_hand() -> None:
    """1.2 to 0.1 with the scale 10 at version 0 and 30 at version 4, from the third token on."""
    rule = engine(plain=2, first=10.0, growth=5.0)
    assert [rule.temperature(at, 0) for at in (0, 1)] == [1.0, 1.0]
    assert rule.temperature(2, 0) == pytest.approx(2.2 - exp(0.2)) and rule.temperature(6, 4) == pytest.approx(
        2.2 - exp(0.2)
    )
    assert rule.temperature(5, 0) == pytest.approx(0.5512787) and rule.temperature(8, 0) == 0.1
    falling = [rule.temperature(at, 0) for at in range(2, 60)]
    assert falling == sorted(falling, reverse=True) and falling[6:] == [0.1] * 52
    assert rule.temperature(10_000_000, 0) == 0.1, "nothing overflows"


def test_it_is_1_where_the_scale_says() -> None:
    rule = engine(first=40 / log(1.2), growth=0.0)
    assert rule.temperature(40, 7) == pytest.approx(1.0, abs=1e-12)
    assert rule.temperature(10, 0) < 1.2 and rule.temperature(9, 0) == 1.0
    assert engine().temperature(500, 0) == 0.1 and engine().temperature(100, 0) == pytest.approx(2.2 - exp(0.2))


def test_late_heat_rises_by_the_same_rule() -> None:
    early, late = engine(plain=0, first=10.0), engine(plain=0, first=10.0, is_late=True)
    assert late.temperature(0, 0) == pytest.approx(0.1) and late.temperature(50, 0) == pytest.approx(1.2)
    for at in range(20):
        assert late.temperature(at, 0) + early.temperature(at, 0) == pytest.approx(1.3)


def test_logprobs_are_of_what_was_sampled_from(tmp_path: Path) -> None:
    """Pieces of 3 tokens after 2 plain ones, at half of the temperature: against a full forward pass."""
    folder = save_tiny_model(tmp_path / "model", "llama", spread=4.0)
    rule = AnnealedTemperature(opened(folder), plain=2, first=6.0, growth=1.0, size=3)
    (prompt,) = prompts_of([6])

    async def ask(policy_name: str, max_tokens: int = 11) -> Completion:
        return await rule.sample(prompt, Sampling(0.5, max_tokens=max_tokens, policy_name=policy_name), 5)

    written = asyncio.run(ask(f"{ANNEALED}2"))
    count = len(written.tokens)
    assert count > 6 and written.stop is (Stop.LENGTH if count == 11 else Stop.STOP)
    heat = [1.0 if at < 2 else max(2.2 - exp((2 + (at - 2) // 3 * 3) / 8), 0.1) for at in range(count)]
    assert written.aux[TEMPERATURE].tolist() == pytest.approx(heat)
    rows = reference_logprobs(load_reference(folder), np.concatenate([prompt, written.tokens]))[len(prompt) - 1 : -1]
    tempered = torch.log_softmax(rows / (0.5 * torch.tensor(heat)).unsqueeze(1), -1).numpy()
    assert written.logprobs == pytest.approx(tempered[np.arange(count), written.tokens], abs=1e-4)
    plain = asyncio.run(ask(""))
    assert TEMPERATURE not in plain.aux and plain.tokens[:2].tolist() == written.tokens[:2].tolist()
    assert len(asyncio.run(ask(f"{ANNEALED}0", 1)).tokens) == 1


def test_bad_numbers_are_told() -> None:
    for fields, told in [
        ({"hottest": 0.9}, r"got 0\.1 and 0\.9"),
        ({"coldest": 0.0}, r"got 0\.0 and 1\.2"),
        ({"first": 0.0}, r"got 0\.0, 100\.0, 4 and 10"),
        ({"growth": -1.0}, r"got 500\.0, -1\.0"),
        ({"size": 0}, r"100\.0, 0 and 10"),
        ({"plain": -1}, "4 and -1"),
    ]:
        with pytest.raises(ConfigurationError, match=told):
            engine(**fields)
    assert engine(hottest=1.0, coldest=1.0, plain=0, size=1, growth=0.0).temperature(3, 0) == 1.0


def test_a_run_needs_the_engine_that_anneals() -> None:
    run = build(recipe_named("ead"), {})
    check(run)
    with pytest.raises(ConfigurationError, match="needs the engine AnnealedTemperature"):
        check(replace(run, engine=run.engine.inner))  # type: ignore[attr-defined]


COMPLETION = "123456789"


def test_a_text_that_ends_a_completion_may_lie_across_two_pieces(tmp_path: Path) -> None:
    """Pieces 1, 23, 45, ...: the text 34 is complete within the third."""
    inner = Counting(lambda prompt, key: COMPLETION[len(prompt) :])
    rule = AnnealedTemperature(inner, plain=1, size=2)
    rule.open(save_pocket_like(tmp_path / "model"))
    asked = Sampling(stop=("34",), policy_name=f"{ANNEALED}0")
    written = asyncio.run(rule.sample(np.zeros(0, np.int64), asked, 1))
    assert written.stop is Stop.STOP and len(written.tokens) == len(written.aux[TEMPERATURE]) == 4


def test_in_a_run_completions_cool_and_their_tokens_are_sampled_once(tmp_path: Path) -> None:
    """Nine digits and the end: pieces of 1, 2, 2, ... tokens; the second step has another version and scale."""
    inner = Counting(lambda prompt, key: COMPLETION[len(prompt.rpartition("<|assistant|>")[2]) :])
    rule = AnnealedTemperature(inner, plain=1, first=8.0, growth=4.0, size=2)
    found = flown(save_pocket_like(tmp_path / "model"), tmp_path / "ledger.db", Annealed(), rule)
    for rollout in found.rollouts.values():
        (turn,) = rollout.turns
        version = int(rollout.id.split("/")[0]) // 4
        assert turn.message.content == COMPLETION and turn.sampling.policy_name == f"{ANNEALED}{version}"
        heat = [rule.temperature(at, version) for at in (0, 1, 1, 3, 3, 5, 5, 7, 7, 9)]
        assert turn.aux[TEMPERATURE][len(turn.prompt) :].tolist() == pytest.approx(heat)
        assert rollout.facts["heat"] == pytest.approx(sum(heat) / 10)
        assert rollout.facts["cooling"] == pytest.approx((sum(heat[:5]) - sum(heat[5:])) / 5)
    assert sorted(found.heard) == [COMPLETION] * 24 and found.row["fact/cooling"] > 0


class Narrow(Scripted):
    """Has room for five tokens in all."""

    calls = 0

    async def sample(self, prompt: IntArray, sampling: Sampling, key: int) -> Completion:
        self.calls += 1
        count = min(sampling.max_tokens, max(5 - len(prompt), 0))
        return Completion(np.full(count, 7), np.zeros(count, np.float32), np.zeros(count, np.int64), Stop.LENGTH)


def test_a_piece_that_met_the_end_of_the_context_is_the_last() -> None:
    """1, 3 and then 1 of 3 tokens; where the context ends with a piece, one more is asked for and has none."""
    for size, sizes in ((3, 3), (2, 4)):
        inner = Narrow({})
        rule = AnnealedTemperature(inner, plain=1, size=size)
        written = asyncio.run(
            rule.sample(np.zeros(0, np.int64), Sampling(max_tokens=20, policy_name=f"{ANNEALED}0"), 1)
        )
        assert len(written.tokens) == 5 and written.stop is Stop.LENGTH and inner.calls == sizes
