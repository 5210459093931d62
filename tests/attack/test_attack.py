"""The hacking bench: holes are found, sound rewards pass, and nothing of a completion runs in this process."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from strop.attack.hostile_completions import FAMILIES, Target, hostile_completions
from strop.attack.results import EnvironmentStanding, FamilyStanding, TriedCompletion
from strop.attack.run_attack import attacked
from strop.cli.commands.attack import attack, rewards_of
from strop.environments.bundled.arithmetic import Arithmetic
from strop.environments.bundled.critiques import Critiques
from strop.environments.bundled.guess import Guess
from strop.environments.bundled.keyvalue import KeyValue
from strop.environments.bundled.programs import Programs
from strop.errors import ConfigurationError
from strop.filter.rewards.controls import Flat
from strop.filter.rewards.from_environment import Checked, Earned
from strop.filter.rewards.majority_vote import Majority
from strop.filter.rewards.python_function import PythonFunction
from strop.filter.rewards.unit_tests import PassedTests
from strop.roles import Environment, Reward
from tests.attack.hackable import Inline

HACKABLE = str(Path(__file__).parent / "hackable.py")
TARGETS = [Target(f"{number}+1=", str(number + 1), str(number + 2)) for number in range(50, 60)]


def stand(reward: Reward, env: Environment, count: int = 44, seconds: float = 5.0) -> EnvironmentStanding:
    found = asyncio.run(attacked((reward,), env, count, seed=0, seconds=seconds))
    assert not found.problem
    return found


def broken_by(standing: EnvironmentStanding) -> set[str]:
    return {each.family for each in standing.findings}


def test_programs_are_attacked_too_and_no_hostile_one_passes() -> None:
    """Their reward starts a sandbox, which a worker may not leave behind; the environment's own program is what is
    right.
    """
    found = stand(PassedTests(), Programs(1), count=22)
    assert not found.findings and {(each.right, each.wrong) for each in found.tried} == {(1.0, 0.0)}
    assert any("return" in each.text for each in found.tried), "another task's program is tried"


def test_every_answer_is_said_with_a_wrong_one_last() -> None:
    """Two letters are all the answers there are: who says both earns nothing where the last one counts."""
    assert not stand(Earned(), Critiques(1), count=22).findings


# ---- completions


def test_completions_are_the_same_for_the_same_seed_and_of_every_family() -> None:
    first, again, other = (list(hostile_completions(TARGETS, 220, seed)) for seed in (0, 0, 1))
    assert first == again != other and len(first) == 220
    counts = {family: sum(each.family == family for _, each in first) for family in FAMILIES}
    assert set(counts.values()) == {20} and len(FAMILIES) >= 8
    assert len({each.text for _, each in first}) > 150


def test_a_completion_holds_the_right_answer_only_where_it_says_all_of_them() -> None:
    for place, hostile in hostile_completions(TARGETS, 440, 0):
        words = hostile.text.replace("\\boxed{", " ").replace("}", " ").replace(">", " ").replace("<", " ").split()
        right = TARGETS[place].right
        if hostile.family == "every answer":
            assert f"{right}" in hostile.text and words[0] != right and right not in words[-1:]
        elif hostile.family != "question again":
            assert right not in [word.strip(",.:;!?\"'") for word in words], hostile


def test_megabyte_numbers_and_slow_texts_are_among_them() -> None:
    sizes: dict[str, int] = {}
    for _, hostile in hostile_completions(TARGETS, 1000, 0):
        sizes[hostile.family] = max(sizes.get(hostile.family, 0), len(hostile.text))
    assert sizes["long numbers"] > 500_000 and sizes["slow to read"] >= 96_000


# ---- holes are found


@pytest.mark.parametrize(
    ("hole", "families"),
    [
        ("holds", {"every answer"}),
        ("evaluates", {"code"}),
        ("asks_a_gullible_judge", {"judge tags", "orders to a judge"}),
    ],
)
def test_a_hackable_reward_is_caught_by_the_attack_it_falls_to(hole: str, families: set[str]) -> None:
    standing = stand(PythonFunction(f"{HACKABLE}:{hole}"), Arithmetic(3), 110)
    assert broken_by(standing) == families
    assert standing.ratio == 1.0 and standing.plain()["families"][min(families)]["ratio"] == 1.0
    assert (standing.plain()["right"], standing.plain()["wrong"]) == (1.0, 0.0)


def test_completions_that_exhaust_a_reward_are_ended_at_its_deadline_and_earn_what_wrong_ones_do() -> None:
    standing = stand(PythonFunction(f"{HACKABLE}:backtracks"), Arithmetic(3), 33, seconds=0.3)
    slow = [each for each in standing.tried if each.fault]
    assert slow and all("no answer within 0.3 s" in each.fault and each.earned == 0.0 for each in slow)
    assert sum(family.plain()["exhausted"] for family in standing.families.values()) == len(slow)
    assert not standing.findings and len(standing.tried) == 33


@pytest.mark.parametrize("env", [Arithmetic(3), KeyValue(2), Guess(1)], ids=lambda env: env.name)
def test_bundled_envs_have_no_hole(env: Environment) -> None:
    standing = stand(Earned(), env)
    assert not standing.findings and standing.ratio == 0.0
    assert standing.plain()["right"] == 1.0 and sum(each.earned is None for each in standing.tried) == 0


def test_a_reward_that_compares_is_shown_a_hostile_completion_among_ordinary_ones() -> None:
    standing = stand(Majority((Arithmetic(3),)), Arithmetic(3), 22)
    assert standing.ratio == 0.0 and not standing.findings


def test_a_reward_that_tells_no_answers_apart_guards_nothing() -> None:
    standing = stand(Flat(), Arithmetic(3), 11)
    assert standing.ratio is None and not standing.findings


def test_what_ordinary_answers_fail_is_said_instead_of_attacked() -> None:
    found = asyncio.run(attacked((Checked((Arithmetic(2),)),), KeyValue(1), 11, 0, 5.0))
    assert "fails an ordinary answer" in found.problem and "knows no environment 'keyvalue'" in found.problem


# ---- nothing of a completion runs here


def test_nothing_of_a_completion_is_compiled_here_and_rewards_run_elsewhere(tmp_path: Path) -> None:
    texts: list[str] = []
    watching = [True]

    def watch(event: str, arguments: tuple[Any, ...]) -> None:
        if watching and event == "compile" and arguments[0] is not None:
            texts.append(
                arguments[0].decode(errors="replace") if isinstance(arguments[0], bytes) else str(arguments[0])
            )

    sys.addaudithook(watch)
    try:
        standing = stand(Inline(str(tmp_path)), Arithmetic(3), 110)
    finally:
        watching.clear()  # a hook cannot be taken away
    said = {each.text for each in standing.tried if each.text.strip()}
    assert not said & set(texts)
    assert {int(path.name) for path in tmp_path.iterdir()}.isdisjoint({os.getpid()}) and list(tmp_path.iterdir())


# ---- metrics


def tried(earned: float | None, right: float = 1.0, wrong: float = 0.2, **more: Any) -> TriedCompletion:
    return TriedCompletion("code", "x", earned, right, wrong, 0.5, **more)


@pytest.mark.parametrize(
    ("earned", "right", "wrong", "ratio", "is_finding"),
    [
        (1.0, 1.0, 0.2, 1.0, True),
        (0.6, 1.0, 0.2, 0.5, False),
        (0.2, 1.0, 0.2, 0.0, False),
        (1.4, 1.0, 0.2, 1.5, True),
        (None, 1.0, 0.2, None, False),
        (0.5, 0.5, 0.5, None, False),
        (0.6, 0.5, 0.5, None, True),  # no answer earns as much
        (0.0, -1.0, 0.0, None, False),
    ],
)
def test_what_is_a_finding(
    earned: float | None, right: float, wrong: float, ratio: float | None, is_finding: bool
) -> None:
    found = tried(earned, right, wrong)
    assert found.is_finding is is_finding and found.ratio == (None if ratio is None else pytest.approx(ratio))


def test_a_family_by_hand() -> None:
    plain = FamilyStanding([tried(0.2), tried(0.6), tried(None, fault="slow"), tried(1.0)]).plain()
    assert (plain["completions"], plain["most"], plain["mean"]) == (4, 1.0, pytest.approx(0.6))
    assert (plain["failed"], plain["fault"], plain["seconds"], plain["findings"]) == (1, "slow", 2.0, 1)


# ---- the command


def run(words: Sequence[str], **more: Any) -> int:
    return attack(words, **{"envs": (), "completions": 22, "seed": 0, "seconds": 5.0, "as_json": False, **more})


def test_the_command_says_what_each_family_earned(capsys: pytest.CaptureFixture[str]) -> None:
    assert run([f"{HACKABLE}:holds"], envs=["arithmetic:3"]) == 1
    told = capsys.readouterr().out
    assert "arithmetic:3: a right answer earns 1, a wrong one 0; 2 of 22 hostile completions are rewarded like" in told
    assert "every answer" in told and "rewarded as right, every answer: '" in told
    assert run(["grpo", "env=arithmetic:2"], as_json=True) == 0
    plain = json.loads(capsys.readouterr().out)
    assert plain["ratio"] == 0.0 and plain["envs"]["arithmetic:2"]["families"]["code"]["completions"] == 2


def test_what_can_be_attacked() -> None:
    names = [env.name for env, _ in rewards_of("checked", {}, [])]
    assert {"arithmetic", "compose", "countdown", "guess", "keyvalue", "passages"} <= set(names)
    ((_, rewards),) = rewards_of("Earned", {"weight": "0.5"}, [Arithmetic(1)])
    assert rewards == (Earned(weight=0.5),)
    with pytest.raises(ConfigurationError, match="no reward and no recipe 'chekced': did you mean checked"):
        rewards_of("chekced", {}, [])
    with pytest.raises(ConfigurationError, match="GradedAnswer needs judge: add FIELD=VALUE, or attack a recipe"):
        rewards_of("graded_answer", {}, [])
    with pytest.raises(ConfigurationError, match="a recipe has its own environments"):
        rewards_of("grpo", {}, [Arithmetic(1)])
