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
    everything = PythonFunction(f"{PAYING}:everything")
    with pytest.raises(ConfigurationError, match="allow_constant_completions=true"):
        probe_rewards(run_of(everything))
    (said,) = probe_rewards(run_of(everything, allow_constant_completions=True))
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
