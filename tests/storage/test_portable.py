"""Rollouts as rows of other libraries, and back: the same bits, and the same gradient."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from strop.errors import ConfigurationError, DataError
from strop.launch.running.launch import launch
from strop.recipes.classics.grpo import grpo
from strop.recipes.setting import Setting
from strop.storage.ledger.ledger import Ledger
from strop.storage.portable import LIBRARIES, groups_of, rows_of
from strop.training.advantages.group_relative import GroupStandard
from strop.training.losses.clip import Clip
from strop.training.objective import Objective
from strop.training.pack import pack
from strop.training.reductions.means import TokenMean
from strop.types import Group, Message
from tests.training.tiny import opened, random_groups, save_llama


@pytest.fixture(scope="module")
def groups(tmp_path_factory: pytest.TempPathFactory) -> list[Group]:
    """Of a run: guesses take several turns."""
    place = tmp_path_factory.mktemp("runs")
    setting = Setting(env="guess:1", steps=1, groups_per_step=3, group_size=4, heldout_tasks=0, max_tokens=12)
    launch(grpo(setting), place, "own")
    ledger = Ledger(place / "own" / "ledger.db", read_only=True)
    found = list(ledger.history())
    ledger.close()
    return found


def there_and_back(groups: list[Group], library: str, place: Path) -> list[Group]:
    path = place / f"{library}.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows_of(groups, library)))
    return groups_of(path)


@pytest.mark.parametrize("library", LIBRARIES)
def test_everything_that_is_trained_on_comes_back(library: str, groups: list[Group], tmp_path: Path) -> None:
    back = there_and_back(groups, library, tmp_path)
    assert [group.number for group in back] == [group.number for group in groups]
    assert any(len(rollout.turns) > 1 for group in groups for rollout in group.rollouts)
    for one, other in zip(groups, back, strict=True):
        for here, there in zip(one.rollouts, other.rollouts, strict=True):
            assert (here.id, here.reward, here.rewards, here.outcome, here.origin) == (
                *(there.id, there.reward, there.rewards, there.outcome),
                there.origin,
            )
            assert here.task.messages == there.task.messages and here.task.answer == there.task.answer
            assert [turn.message.content for turn in here.turns] == [turn.message.content for turn in there.turns]
            for turn, again in zip(here.turns, there.turns, strict=True):
                assert np.array_equal(turn.prompt, again.prompt) and np.array_equal(turn.tokens, again.tokens)
                assert np.array_equal(turn.logprobs, again.logprobs) and np.array_equal(turn.versions, again.versions)
                assert turn.logprobs.dtype == again.logprobs.dtype and turn.tokens.dtype == again.tokens.dtype


@pytest.mark.parametrize("library", LIBRARIES)
def test_the_gradient_after_the_round_trip_is_the_same(library: str, tmp_path: Path) -> None:
    """That on the rollouts and that on what came back, bit by bit."""
    folder = save_llama(tmp_path / "llama")
    objective = Objective((Clip(),))

    def gradient(groups: list[Group]) -> dict[str, torch.Tensor]:
        for group in groups:
            for number, rollout in enumerate(group.rollouts):
                rollout.reward, rollout.rewards = float(number % 2), {"outcome": float(number % 2)}
        GroupStandard()(groups)
        return opened(folder, clip_norm=None).gradient(pack(groups, TokenMean(), 0, 4096, objective.scope), objective)

    groups = random_groups(4, 3)
    before, after = gradient(groups), gradient(there_and_back(groups, library, tmp_path))
    assert before and any(weight.abs().max() > 0 for weight in before.values())
    assert all(torch.equal(before[name], after[name]) for name in before)


def test_rows_have_what_the_library_names(groups: list[Group]) -> None:
    first = {library: next(rows_of(groups, library)) for library in LIBRARIES}
    row, whole = first["trl"], groups[0].rollouts[0]
    assert len(row["completion_ids"]) == len(row["logprobs"]) == len(row["env_mask"])
    assert sum(row["env_mask"]) == whole.num_tokens and row["completion"][0]["role"] == "assistant"
    steps = first["verifiers"]["trajectory"]
    assert len(steps) == len(whole.turns) and steps[0]["tokens"]["prompt_ids"] == row["prompt_ids"]
    datum = first["tinker"]
    inputs = datum["loss_fn_inputs"]
    assert datum["model_input"]["chunks"][0]["tokens"][1:] == inputs["target_tokens"]["data"][:-1]
    mean = np.mean([rollout.reward for rollout in groups[0].rollouts])
    own = [place for place, each in enumerate(inputs["mask"]["data"]) if each]
    assert np.allclose([inputs["advantages"]["data"][place] for place in own], whole.reward - mean)


def test_all_that_tools_answered_between_two_completions_is_written(groups: list[Group]) -> None:
    first, second = (replace(groups[0].rollouts[0].turns[0], message=Message("assistant", each)) for each in "ab")
    answers = (Message("tool", "one"), Message("tool", "two"))
    told = replace(second, fresh=False, told=answers)
    talked = replace(groups[0].rollouts[0], turns=(first, told))
    row = next(rows_of([replace(groups[0], rollouts=[talked])], "trl"))
    assert [each["content"] for each in row["completion"]] == ["a", "one", "two", "b"]


def test_what_is_no_such_file_is_refused(groups: list[Group], tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="verifiers, trl, tinker, not as 'verl'"):
        list(rows_of(groups, "verl"))
    path = tmp_path / "rows.jsonl"
    path.write_text('{"prompt": "1+1=?"}\n')
    with pytest.raises(DataError, match=r"rows\.jsonl:1 is no row"):
        groups_of(path)
    row = next(rows_of(groups, "trl"))
    path.write_text(json.dumps({**row, "logprobs": row["logprobs"][1:]}) + "\n")
    with pytest.raises(DataError, match="log-probabilities in its row"):
        groups_of(path)
