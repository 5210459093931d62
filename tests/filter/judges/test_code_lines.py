"""Lines of programs, their labels and what they are paid: by hand; the judge that learns them against its own data."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from math import ceil, log2
from pathlib import Path

import numpy as np
import pytest

from strop.backends import Completion
from strop.environments.bundled.programs import Programs
from strop.environments.code.cases import cases_of
from strop.errors import ConfigurationError
from strop.filter.judges.arithmetic_steps import StepJudge
from strop.filter.judges.code_lines import LABEL, label_row, labels_of, last_tokens, lines_in
from strop.filter.paid_text import Span
from strop.filter.rewards.line_prm import JudgedLines
from strop.generate.agents.chat import Chat
from strop.generate.group_rollouts import GroupPlayer
from strop.generate.turn_ops import noted
from strop.recipes.reward.prlcoder import RewrittenLines, mutated, refactored, rewritten
from strop.recipes.reward.prm_code import FirstBadLine, InitializedCritic
from strop.roles import Environment, Episode
from strop.training.values.line_judge import LineJudge
from strop.training.values.line_scores import LineScores
from strop.types import SUCCESS, Group, IntArray, Message, Observation, Outcome, Rollout, Sampling, Task
from tests.filter.completions import said
from tests.generate.talking import TASK, VOCABULARY, Recording, policy_of, run, save_folder
from tests.tiny_models import save_pocket_like

COMPLETION = "so\n```\ndef f(x):\n\n # why\n y=x\n return y\n```"


def test_lines_that_do_nothing_are_none() -> None:
    lines = lines_in(COMPLETION)
    assert [(line.number, COMPLETION[line.start : line.end]) for line in lines] == [
        (1, "def f(x):"),
        (4, " y=x"),
        (5, " return y"),
    ]
    assert lines_in("") == lines_in("<think>x=1") == lines_in("# a\n\n") == []
    began = time.process_time()
    assert len(lines_in("a\n" * 48_000)) == 48_000
    assert time.process_time() - began < 1, "the time grows with the length, not with its square"


def test_labels_stand_at_the_last_token_of_their_line() -> None:
    """Tokens of two letters: the one that holds a line's last letter, though it may hold the next line's first."""
    ends = np.arange(2, len(COMPLETION) + 2, 2)
    row = label_row({1: 1.0, 5: -1.0, 9: 1.0}, COMPLETION, ends)
    first, _, last = last_tokens(lines_in(COMPLETION), ends)
    assert np.flatnonzero(row).tolist() == [first, last] and row[[first, last]].tolist() == [1.0, -1.0]
    assert (COMPLETION.index(":") // 2, COMPLETION.rindex("y") // 2) == (first, last)
    assert label_row({1: 1.0, 5: -1.0}, COMPLETION, ends, given=first + 1).tolist() == row[first + 1 :].tolist()
    (rollout,) = said(TASK, "ab").rollouts
    assert labels_of(rollout).tolist() == [0.0, 0.0]
    assert labels_of(replace(rollout, turns=noted(rollout.turns, LABEL, np.array([0.0, 1.0])))).tolist() == [0.0, 1.0]


@dataclass(frozen=True)
class Told(StepJudge):
    values: tuple[float, ...]

    def steps(self, rollout: Rollout) -> list[Span]:
        return [Span(0, place, place + 1, value) for place, value in enumerate(self.values)]


def test_pay_is_divided_by_the_number_of_lines_and_bounded() -> None:
    (paid,) = JudgedLines(Told((0.5, 3.0, -2.0, -0.1)))(said(TASK, "abcd"))
    assert paid.end == 0.0 and [span.value for span in paid.spans] == pytest.approx([0.125, 0.25, -0.25, -0.025])
    assert [(span.start, span.end) for span in paid.spans] == [(0, 1), (1, 2), (2, 3), (3, 4)]
    many = JudgedLines(Told((1.0,) * 50))(said(TASK, "a" * 50))[0]
    assert sum(span.value for span in many.spans) == pytest.approx(1.0)
    assert JudgedLines(Told(()))(said(TASK, "a"))[0].spans == ()


@dataclass
class Lines(Environment, Episode):
    """Right is what ends with a good letter; a completion is begun by lines of which the first `good` can be mended."""

    name = "test"
    level = 0

    def task(self, index: int, heldout: bool = False) -> Task:
        return TASK

    def episode(self) -> Episode:
        return self

    def check(self, task: Task, completion: str) -> float:
        return float(completion.endswith("ok"))

    async def reset(self, task: Task) -> None: ...

    async def step(self, completion: Message) -> Observation:
        return Observation(done=True, reward=self.check(TASK, completion.content))


@dataclass
class Mends(Recording):
    """Says `first`; completes a beginning of at most `good` lines rightly every other time, and never any other."""

    good: int = 0
    first: str = ""

    async def sample(self, prompt: IntArray, sampling: Sampling, key: int) -> Completion:
        opened = np.flatnonzero(prompt == VOCABULARY["<|start|>"])[-1]
        lines = int((prompt[opened:] == VOCABULARY["\n"]).sum())  # one behind the role, one between two lines
        is_mended = lines <= self.good and len(self.prompts) % 2 == 0
        self.completions = [*self.completions, ("\nok|" if is_mended else "\nno|") if self.prompts else self.first]
        return await super().sample(prompt, sampling, key)


def by_checks(env: Environment) -> Callable[[Group], Awaitable[None]]:
    """Scoring by the environment's own check."""

    async def score(group: Group) -> None:
        for each in group.rollouts:
            each.reward = each.facts[SUCCESS] = env.check(each.task, each.completion)

    return score


@pytest.mark.parametrize("count", [1, 2, 3, 5, 8])
def test_the_first_bad_line_is_found_by_halving(tmp_path: Path, count: int) -> None:
    folder = save_folder(tmp_path)
    for good in range(count):
        engine = Mends([], good=good, first="\n".join(f"a{n}" for n in range(count)) + "|")
        policy = policy_of(folder, engine)
        strategy = FirstBadLine(2)
        strategy.meet(policy)
        group = Group(0, TASK, [])
        play = GroupPlayer(group, policy, (Lines(),), Chat(), 0, by_checks(Lines()))
        (rollout,) = run(strategy(group, [play.another()], play))
        labels = labels_of(rollout)
        found = labels[labels != 0].tolist()
        assert found == [1.0] * good + [-1.0] * (count - good)
        places = rollout.facts["completed_places"]
        assert places <= ceil(log2(count)) and len(play.unused([rollout])) == 2 * places
        assert rollout.facts["good_lines"] == good / count


def test_a_program_that_passes_has_no_bad_line_and_a_failed_one_no_labels(tmp_path: Path) -> None:
    policy = policy_of(save_folder(tmp_path), Recording(["a\nb\nok|", "<think>x|"]))
    strategy = FirstBadLine(2)
    strategy.meet(policy)
    group = Group(0, TASK, [])
    play = GroupPlayer(group, policy, (Lines(),), Chat(), 0, by_checks(Lines()))
    passed, empty = run(strategy(group, [play.another(), play.another()], play))
    assert labels_of(passed)[labels_of(passed) != 0].tolist() == [1.0] * 3 and len(play.made) == 2
    assert not labels_of(empty).any()
    with pytest.raises(ConfigurationError, match="samples >= 1, got 0"):
        FirstBadLine(0)


def test_what_a_teacher_rewrites_is_labelled_by_running_it(tmp_path: Path) -> None:
    """Every label of 24 rewritten programs against a run of that program; equal mutants are good, as tests say."""
    env = Programs(3)
    task = env.task(4)
    folder = save_folder(tmp_path)
    policy = policy_of(folder, Recording([]), max_tokens=200)
    strategy = RewrittenLines()
    strategy.meet(policy)
    group = Group(0, task, [])
    play = GroupPlayer(group, policy, (env,), Chat(), 0, by_checks(env))

    async def made() -> list[tuple[Rollout, bool]]:
        found = await strategy(group, [play.another() for _ in range(24)], play)
        again = [await env.trials.of(each.completion, cases_of(task)) for each in found]
        await env.trials.close()
        return [(rollout, trial.is_right) for rollout, trial in zip(found, again, strict=True)]

    kinds = set()
    for rollout, is_right in asyncio.run(made()):
        known, lines = cases_of(task).solution.split("\n"), rollout.completion.split("\n")
        changed = [place for place in range(4) if lines[place] != known[place]]
        labels = labels_of(rollout)
        found = labels[labels != 0].tolist()
        assert len(changed) <= 1 and (is_right or changed)
        assert found == ([1.0] * 4 if is_right else [1.0] * changed[0] + [-1.0])
        kinds.add((is_right, bool(changed)))
    assert {(True, True), (False, True)} <= kinds


def test_rules_rewrite_one_line() -> None:
    assert {refactored(" return x+3", random.Random(n)) for n in range(9)} == {" return 3+x", " return (x+3)"}
    assert {mutated(" x=x*3", random.Random(n)) for n in range(9)} == {" x=x*4", " x=x+3"}
    assert mutated(" return sorted(x)", random.Random(0)) == " return x" and mutated("pass", random.Random(0)) == "pass"
    assert all(rewritten("a\n x=x+1\n return x*2", key)[1] in (2, 3) for key in range(20))


def labelled(count: int) -> list[Group]:
    """Rollouts of five tokens whose third is labelled by whether the second is even."""
    groups = []
    for number in range(count):
        group = said(TASK, "abcde", "abcde")
        for place, rollout in enumerate(group.rollouts):
            (turn,) = rollout.turns
            tokens = np.array([5, 8 + (number + place) % 2, 6, 7, 9])
            row = np.array([0, 0, 1.0 if place == number % 2 else -1.0, 0, 0], np.float32)
            rollout.turns = noted((replace(turn, tokens=tokens),), LABEL, row)
            rollout.id = f"{number}/{place}"
        groups.append(group)
    return groups


def test_a_judge_learns_labels_and_others_begin_with_it(tmp_path: Path) -> None:
    model = save_pocket_like(tmp_path / "model")
    judge = LineJudge(learning_rate=3e-3)
    judge.open(model, 0)
    groups = labelled(4)
    groups[0].rollouts[0].outcome = Outcome.FAILED
    first = judge.learn(groups)
    assert first["line_labels"] == 7.0 and first["lines_known"] == 0.0  # 0 at first, which has no sign
    for _ in range(30):
        last = judge.learn(groups)
    assert last["lines_known"] == 1.0
    judge.predict(groups)
    for rollout in (rollout for group in groups for rollout in group.scored):
        assert rollout.values is not None and rollout.values[2] == pytest.approx(labels_of(rollout)[2], abs=0.3)
    judge.save(tmp_path)
    critic = InitializedCritic(folder=str(tmp_path))
    critic.open(model, 0)
    critic.predict(groups)
    assert any(rollout.values.any() for group in groups for rollout in group.scored if rollout.values is not None)
    scores = LineScores(str(tmp_path), str(model))
    with pytest.raises(ConfigurationError, match=r"meet\(policy\) first"):
        scores.steps(groups[0].scored[0])
    assert judge.learn([said(TASK, "abc")]) == {"line_labels": 0.0}
    scores.meet(policy := policy_of(model, Recording([]), context=512))
    (rollout,) = said(TASK, "a\nb\nc").rollouts
    rollout.turns = (replace(rollout.turns[0], tokens=policy.template.encode("a\nb\nc")),)
    judge.predict([Group(0, TASK, [rollout])])
    assert rollout.values is not None
    found = scores.steps(rollout)
    assert [span.value for span in found] == pytest.approx(rollout.values[[0, 2, 4]].tolist(), abs=1e-6)
    assert [(span.turn, span.start, span.end) for span in found] == [(0, 0, 1), (0, 2, 3), (0, 4, 5)]


def test_a_mistake_is_one_more_or_another_operation() -> None:
    assert {mutated(" x=x+3", random.Random(number)) for number in range(20)} == {" x=x+4", " x=x-3"}
