"""A run whose rewards pay completions that never change is refused before it has a folder, unless it says so."""

from __future__ import annotations

import random
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
import torch

from strop import recipe
from strop.capabilities import Remembers
from strop.environments.bundled.arithmetic import Arithmetic
from strop.environments.external.reasoning_gym import ReasoningGym
from strop.errors import ConfigurationError
from strop.filter.rewards.controls import Coin, Flat
from strop.filter.rewards.from_environment import Checked, Earned
from strop.filter.rewards.python_function import PythonFunction
from strop.generate.llm_clients.local_model import Local
from strop.launch.running.launch import launch
from strop.launch.running.probing import probe_rewards
from strop.roles import Reward
from strop.run import Run
from strop.types import Group
from tests.recipes.every import every_run
from tests.tiny_models import save_pocket_like

PAYING = str(Path(__file__).parents[2] / "attack" / "paying.py")


def run_of(*rewards: Reward, **fields: Any) -> Run:
    return replace(recipe("grpo", env="arithmetic:2"), rewards=rewards, **fields)


def test_a_run_on_a_family_that_pays_nan_is_refused_and_leaves_no_folder(tmp_path: Path) -> None:
    env = ReasoningGym("complex_arithmetic")
    run = replace(recipe("grpo"), envs=(env,), rewards=(Checked((env,)),), model=str(save_pocket_like(tmp_path)))
    with pytest.raises(ConfigurationError, match=r"complex_arithmetic:0 pay a completion that never changes: 'nan'"):
        launch(run, tmp_path / "runs", "run")
    assert not (tmp_path / "runs").exists()


def test_it_is_allowed_by_a_field_and_said_all_the_same() -> None:
    half = PythonFunction(f"{PAYING}:half")
    with pytest.raises(ConfigurationError, match="allow_constant_completions=true"):
        probe_rewards(run_of(half))
    (said,) = probe_rewards(run_of(half, allow_constant_completions=True))
    assert said.startswith("rewards of arithmetic:2 pay a completion that never changes")


def test_a_plain_run_and_negative_controls_are_let_through() -> None:
    for rewards in ((Earned(),), (Flat(),), (Coin(),)):
        assert probe_rewards(run_of(*rewards)) == []


def test_what_asks_a_model_is_not_tried_and_that_is_said() -> None:
    @dataclass(frozen=True)
    class Asks(Reward):
        llm_client: Local
        weight: float = 1.0

        def __call__(self, group: Group) -> list[float]:
            raise AssertionError("nobody may be asked")

    (said,) = probe_rewards(run_of(Asks(Local("nowhere"))))
    assert "were not tried in arithmetic:2" in said and "strop attack" in said


@dataclass
class Counting(Reward, Remembers):
    """Draws at random, and counts what it was asked."""

    weight: float = 1.0
    asked: int = field(default=0)
    is_inline: ClassVar[bool] = True

    def __call__(self, group: Group) -> list[float]:
        self.asked += 1
        random.random(), np.random.rand(), torch.rand(1)
        return [sum(rollout.turn_rewards) for rollout in group.rollouts]

    def state(self) -> dict[str, Any]:
        return {"asked": self.asked}

    def restore(self, state: dict[str, Any]) -> None:
        self.asked = state["asked"]


def test_nothing_of_the_run_is_touched_by_it() -> None:
    reward, env = Counting(), Arithmetic(2)
    before = random.getstate(), np.random.get_state()[1].tolist(), torch.get_rng_state().tolist()  # type: ignore[index]
    assert probe_rewards(replace(run_of(reward), envs=(env,))) == []
    assert reward.asked == 0, "a copy was asked"
    after = random.getstate(), np.random.get_state()[1].tolist(), torch.get_rng_state().tolist()  # type: ignore[index]
    assert before == after


def test_one_answer_that_solves_nearly_all_is_doubted(tmp_path: Path) -> None:
    path = tmp_path / "tasks.jsonl"
    path.write_text("\n".join(f'{{"prompt": "{n}?", "answer": "{"7" if n % 20 else "8"}"}}' for n in range(80)))
    run = recipe("grpo", env=str(path))
    (said,) = probe_rewards(run)
    assert said.startswith("one answer, '7', solves 9")


@pytest.mark.slow
def test_no_recipe_of_the_package_is_refused() -> None:
    for name, run in every_run().items():
        try:
            probe_rewards(run)
        except ConfigurationError as error:
            raise AssertionError(f"{name}: {error}") from error


GSM = '{"question": "Tom has %d and gets %d. How many?", "answer": "He has %d + %d = %d.\\n#### %d"}\n'
OWN = """
import re


def last(completion, answer):
    digits = re.findall(r"-?\\d+", completion)
    return float(bool(digits) and digits[-1] == answer)


def signed(completion, full_answer):
    digits = re.findall(r"-?\\d+", completion)
    return 1.0 if digits and digits[-1] == full_answer else -1.0


def tagged(completion, answer):
    return float(f"<answer>{answer}</answer>" in completion)


def raising(completion):
    return {}["nothing"]


def missing(completion, unit):
    return 1.0


def picky(completion, answer):
    if "<answer>" in completion:
        raise ValueError("no tags please")
    return float(completion.endswith(answer))


def trl(completions, answer, **columns):
    return [float(said[-2:] == due.split("####")[1].strip()) for said, due in zip(completions, answer)]
"""


def worked(folder: Path, name: str, **fields: Any) -> list[str]:
    """Warnings of a run on worked solutions, as GSM8K has them, with a reward of one's own."""
    pairs = [(11 + n, 20 + 3 * n) for n in range(12)]
    (folder / "gsm.jsonl").write_text("".join(GSM % (a, b, a, b, a + b, a + b) for a, b in pairs))
    (folder / "own.py").write_text(OWN)
    return probe_rewards(recipe("grpo", env=str(folder / "gsm.jsonl"), reward=f"{folder}/own.py:{name}", **fields))


def test_a_reward_is_handed_the_answer_as_it_is_read(tmp_path: Path) -> None:
    """The last number of a worked solution, which the row holds in full; TRL's columns stay as they are."""
    assert [worked(tmp_path, name) for name in ("last", "tagged", "trl")] == [[], [], []]


def test_a_reward_that_tells_no_answers_apart_is_refused_at_its_line(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"signed \(own\.py, line 10\) pays right and wrong answers alike"):
        worked(tmp_path, "signed")
    (said,) = worked(tmp_path, "signed", allow_constant_completions=True)
    assert "pays right and wrong answers alike" in said


def test_a_reward_that_raises_is_refused_at_its_line(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"raising \(own\.py, line 19\) fails at .*KeyError.*own\.py, line 20"):
        worked(tmp_path, "raising")
    with pytest.raises(ConfigurationError, match=r"missing \(own\.py, line 23\) fails at .*asks for 'unit'"):
        worked(tmp_path, "missing")


def test_a_reward_that_fails_at_some_form_is_told(tmp_path: Path) -> None:
    assert "ValueError: no tags please" in worked(tmp_path, "picky")[0]
