"""Two policy names in one rollout: who reads what, when it ends, and every sampled token in the loss exactly once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import pytest

from strop.environments.single_turn import SingleTurn
from strop.errors import ConfigurationError
from strop.generate.agents.debate import Debate
from strop.generate.rollout import play
from strop.roles import Environment
from strop.training.advantages.per_turn import PerRole
from strop.training.pack import pack
from strop.training.reductions.means import TokenMean
from strop.types import Group, IntArray, Outcome, Rollout, Start, Task
from tests.generate.talking import TASK, VOCABULARY, Recording, ids, policy_of, run, save_folder

START, DEBATE = Start("a", 7), Debate()


@dataclass
class Sums(Environment):
    """Pays the task's answer, and keeps what it heard."""

    name: str = "test"
    level: int = 0
    is_inline: bool = True
    heard: list[str] = field(default_factory=list)

    def task(self, index: int, heldout: bool = False) -> Task:
        return TASK

    def episode(self) -> SingleTurn:
        return SingleTurn(self)  # type: ignore[arg-type]

    def check(self, task: Task, completion: str) -> float:
        self.heard.append(completion)
        return float(completion.endswith(task.answer))


def debated(
    folder: Path, completions: Sequence[str], agent: Debate = DEBATE, max_tokens: int = 64, context: int = 1024
) -> tuple[Rollout, Recording, Sums]:
    policy = policy_of(save_folder(folder), engine := Recording(completions), max_tokens=max_tokens, context=context)
    return run(play(agent, env := Sums(), policy.dialogue(TASK, START))), engine, env


def text(tokens: IntArray) -> str:
    letters = list(VOCABULARY)
    return "".join(letters[token] for token in tokens)


def said(rollout: Rollout) -> list[tuple[str, str]]:
    return [(turn.sampling.policy_name, turn.message.content) for turn in rollout.turns]


def test_they_agree_at_once(tmp_path: Path) -> None:
    rollout, engine, env = debated(tmp_path, ["<think>2+2=4</think>4|", "4|"])
    assert said(rollout) == [("examiner", "4"), ("solver", "<think>2+2=4</think>4")], "the last word is the solver's"
    assert [turn.fresh for turn in rollout.turns] == [True, True] and len(set(engine.keys)) == 2
    assert env.heard == ["<think>2+2=4</think>4"] and rollout.turn_rewards == (0.0, 1.0)
    assert rollout.outcome is Outcome.FINISHED and rollout.num_sampled == rollout.num_tokens
    assert text(engine.prompts[1]) == (
        "<|start|>system\nbe brief<|end|>\n<|start|>user\n2+2=? hint: 2+2=4 4<|end|>\n<|start|>assistant\n"
    )


def test_they_disagree_until_the_last_round(tmp_path: Path) -> None:
    rollout, engine, env = debated(tmp_path, ["1|", "2|", "3|", "5|", "4|", "never|"])
    assert said(rollout) == [("examiner", "2"), ("examiner", "5"), ("solver", "1"), ("solver", "3"), ("solver", "4")]
    assert env.heard == ["4"] and rollout.turn_rewards == (0, 0, 0, 0, 1)
    assert [turn.fresh for turn in rollout.turns] == [True, False, True, False, False]
    assert len(engine.prompts) == 5 and engine.keys[0] == engine.keys[2] == engine.keys[4] != engine.keys[1]
    last = text(engine.prompts[4])
    assert "hint: 2" in last and "hint: 5" in last and "hint: 3" not in last, "the solver reads the examiner alone"


@pytest.mark.parametrize(
    "completions", [["4|", "4|"], ["1|", "22|", "333|", "5|", "4|"], ["1|", "2|", "33|", "33|"], ["1", "never|"]]
)
def test_every_sampled_token_is_trained_once_behind_what_the_engine_read(
    tmp_path: Path, completions: list[str]
) -> None:
    limit = 64 if completions[0].endswith("|") else 1
    rollout, engine, _ = debated(tmp_path, completions, max_tokens=limit)
    rollout.set_advantage(1.0)
    asked = zip(engine.prompts, completions[: len(engine.prompts)], strict=True)
    sampled = {np.concatenate([prompt, ids(completion)[:limit]]).tobytes() for prompt, completion in asked}
    (batch,) = pack([Group(0, TASK, [rollout])], TokenMean(), 0, 4096)
    assert int(batch.trainable.sum()) == sum(
        len(ids(completion)[:limit]) for completion in completions[: len(engine.prompts)]
    )
    found = set()
    for segment in batch.segments.unique():
        tokens, is_written = batch.tokens[batch.segments == segment], batch.trainable[batch.segments == segment]
        ends = [t for t in range(len(tokens)) if is_written[t] and (t + 1 == len(tokens) or not is_written[t + 1])]
        found |= {tokens[: end + 1].numpy().tobytes() for end in ends}
    assert found == sampled, "each completion stands behind exactly what was read before it was sampled"
    assert float(batch.share[batch.trainable].sum()) == pytest.approx(1.0)


def test_each_policy_has_a_baseline_of_its_own(tmp_path: Path) -> None:
    """A right talk of two turns and a wrong one of five: the solver's mean is 1 / 4, the examiner's 1 / 3."""
    right, _, _ = debated(tmp_path, ["4|", "4|"])
    wrong, _, _ = debated(tmp_path, ["1|", "2|", "3|", "5|", "6|"])
    for rollout in (right, wrong):
        rollout.reward = sum(rollout.turn_rewards)
    PerRole()([Group(0, TASK, [right, wrong])])
    assert right.advantages is not None and wrong.advantages is not None
    assert right.advantages.tolist() == pytest.approx([2 / 3, 2 / 3, 3 / 4, 3 / 4])
    assert wrong.advantages.tolist() == pytest.approx([-1 / 3] * 4 + [-1 / 4] * 6)


def test_completions_without_an_answer_do_not_agree(tmp_path: Path) -> None:
    rollout, _, _ = debated(tmp_path, ["<think>|", "<think>|", "4|"], Debate(rounds=1))
    assert [content for _, content in said(rollout)] == ["<think>", "<think>", "4"]


def test_a_solver_that_is_cut_is_not_examined(tmp_path: Path) -> None:
    rollout, engine, env = debated(tmp_path, ["44", "never|"], max_tokens=2)
    assert rollout.outcome is Outcome.TRUNCATED and len(engine.prompts) == 1 and env.heard == ["44"]


def test_an_examiner_that_is_cut_leaves_the_last_answer(tmp_path: Path) -> None:
    rollout, engine, env = debated(tmp_path, ["4|", "55", "never|"], max_tokens=2)
    assert len(engine.prompts) == 2 and env.heard == ["4"] and rollout.outcome is Outcome.FINISHED


def test_a_context_without_room_ends_the_talk(tmp_path: Path) -> None:
    opening = len(policy_of(save_folder(tmp_path), Recording([])).opening(TASK.messages, TASK))
    rollout, engine, env = debated(tmp_path, ["4" * 50 + "|", "never|"], context=opening + 55)
    assert len(engine.prompts) == 1 and env.heard == ["4" * 50] and rollout.outcome is Outcome.FINISHED


def test_it_does_not_go_on_from_the_middle_and_refuses_what_cannot_be(tmp_path: Path) -> None:
    rollout, _, _ = debated(tmp_path, ["4|", "4|"])
    policy = policy_of(tmp_path, Recording(["4|"]))
    with pytest.raises(ConfigurationError, match="starts at the prompt"):
        run(play(Debate(), Sums(), policy.dialogue(TASK, replace(START, turns=rollout.turns))))
    with pytest.raises(ConfigurationError, match="rounds >= 1"):
        Debate(rounds=0)
    with pytest.raises(ConfigurationError, match=r"\{said\} in asks"):
        Debate(asks="go on")


def test_braces_in_a_question_are_no_places_to_fill(tmp_path: Path) -> None:
    task = Task((replace(TASK.messages[-1], content="{said} {0}?"),), "4", "test")
    policy = policy_of(save_folder(tmp_path), engine := Recording(["1|", "{question}|", "4|"]), max_tokens=32)
    run(play(Debate(rounds=1), Sums(), policy.dialogue(task, START)))
    assert len(engine.prompts) == 3 and "{said} {0}? hint: {question}" in text(engine.prompts[2])
