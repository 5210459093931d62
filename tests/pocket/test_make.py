"""Making the pocket model, at a size that takes seconds."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from strop.environments.bundled.arithmetic import Arithmetic
from strop.environments.bundled.guess import Guess
from strop.pocket.make import Making, make, new_model, to_batch
from strop.pocket.measure import ENVS, grades
from strop.pocket.shards import Shard
from tests.tiny_models import MODEL_FILES

TINY = {"hidden": 32, "layers": 1, "tokens": 3000, "workers": 1, "tasks": 0}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out: Path = tmp_path_factory.mktemp("made")
    make(out, Making(steps=30, learning_rate=1e-2, **TINY))  # type: ignore[arg-type]
    return out


def test_a_batch_lays_conversations_end_to_end_and_shares_add_up_to_one() -> None:
    shard = Shard(
        tokens=np.array([4, 20, 2, 5, 21, 2, 4, 22, 2, 5, 2], dtype=np.uint8),
        trainable=np.array([0, 0, 0, 0, 1, 1, 0, 0, 0, 0, 1], dtype=np.bool_),
        lengths=np.array([6, 5]),
    )
    batch = to_batch(shard)
    assert batch.positions.tolist() == [0, 1, 2, 3, 4, 5, 0, 1, 2, 3, 4]
    assert batch.segments.tolist() == [0] * 6 + [1] * 5
    assert batch.share.tolist() == pytest.approx([0, 0, 0, 0, 1 / 3, 1 / 3, 0, 0, 0, 0, 1 / 3])
    assert batch.versions.tolist() == [-1, -1, -1, -1, 0, 0, -1, -1, -1, -1, 0]
    assert batch.step_tokens == 3


def test_the_model_is_a_plain_folder_that_anything_loads(made: Path) -> None:
    from transformers import AutoModelForCausalLM, AutoTokenizer

    names = {path.name for path in (made / "model").iterdir()}
    assert names == MODEL_FILES
    model: Any = AutoModelForCausalLM.from_pretrained(made / "model")
    tokenizer: Any = AutoTokenizer.from_pretrained(made / "model")
    assert model.config.architectures == ["LlamaForCausalLM"] and model.config.tie_word_embeddings
    assert model.generation_config.eos_token_id == tokenizer.eos_token_id
    scores = model(input_ids=torch.tensor([tokenizer.encode("<|user|>1+1=?<|end|><|assistant|>")])).logits
    assert scores.shape == (1, 8, len(tokenizer)) and scores.dtype == torch.float32


def test_what_was_done_is_recorded(made: Path) -> None:
    record = json.loads((made / "made.json").read_text())
    assert record["arguments"]["seed"] == 0 and record["arguments"]["steps"] == 30
    training = record["training"]
    assert training["steps"] == 30 and 80_000 < training["tokens"] <= 90_000
    assert training["nll"] < 3.5 < np.log(107)
    assert set(record["versions"]) == {"python", "torch", "transformers", "device"}


def test_the_schedule_rises_and_falls() -> None:
    making = Making(steps=100, learning_rate=1.0, warmup=0.1)
    rates = [making.rate(making.progress(step)) for step in range(101)]
    assert rates[0] == pytest.approx(0.01) and rates[100] == pytest.approx(0.02)
    assert max(rates) == pytest.approx(0.9, abs=0.02) and np.argmax(rates) in (9, 10)


def test_the_shipped_size_fits(tmp_path: Path) -> None:
    new_model(tmp_path, Making())
    assert sum(path.stat().st_size for path in tmp_path.iterdir()) < 8_000_000


def test_every_env_and_level_is_graded_once() -> None:
    assert len({(env.name, env.level) for env in ENVS}) == len(ENVS) == 36


def test_grades_of_an_untrained_model_are_low_and_have_intervals(made: Path) -> None:
    found = list(grades(made / "model", "cpu", rows=16, tasks=2, rollouts=4, envs=(Arithmetic(8), Guess(1))))
    assert [(grade.env, grade.level) for grade in found] == [("arithmetic", 8), ("guess", 1)]
    assert found[0].pass_at_1 == 0.0 == found[0].pass_at_many and found[0].high > 0.0
    assert found[0].intended is None and found[1].intended == 0.9
