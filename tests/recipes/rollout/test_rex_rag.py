"""REX-RAG: which rollouts are probed, where, with which words and probabilities; how many probes are kept; each token
sampled once."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from strop.environments.bundled.arithmetic import Arithmetic
from strop.errors import ConfigurationError
from strop.generate.agents.chat import Chat
from strop.generate.group_rollouts import GroupPlayer
from strop.recipes.rollout.rex_rag import Probes
from strop.training.requirements import LOGPROBS, PolicyStatistic
from strop.types import SUCCESS, Group, Origin, Rollout
from tests.building import make_group
from tests.generate.strategies.flowing import Counting, Hearing, flown
from tests.generate.talking import TASK, Recording, ids, policy_of, save_folder
from tests.recipes.rollout.test_ettrl import Completions
from tests.tiny_models import save_pocket_like

LIKELY = {"x": -1.0, "y": -3.0, "z": -2.0}  # of words, by the letter they begin with


def played(
    folder: Path, completions: list[str], starts: int, strategy: Probes, turns: int = 1, number: int = 0
) -> tuple[list[Rollout], GroupPlayer]:
    """Completions that end with 5 are right."""

    async def score(group: Group) -> None:
        for rollout in group.rollouts:
            rollout.reward = float(rollout.completion.endswith("5"))
            rollout.facts[SUCCESS] = rollout.reward

    async def statistics(groups: list[Group], needs: frozenset[PolicyStatistic]) -> None:
        assert needs == {LOGPROBS}
        for rollout in groups[0].scored:
            own = next(turn for turn in rollout.turns if len(turn.tokens))
            value = LIKELY[chr(own.tokens[0] - ids("a")[0] + ord("a"))]
            rest = [-90.0 if value == LIKELY["x"] else -9.0] * (rollout.num_tokens - 2)  # none of the words
            rollout.policy_statistics["logprobs"] = np.array([value, value - 1.0, *rest], np.float32)

    policy = policy_of(save_folder(folder), Recording([f"{completion}|" for completion in completions]))
    strategy.meet(policy)
    group = Group(number, TASK, [])
    play = GroupPlayer(group, policy, (Completions(turns),), Chat(), 0, score, statistics)
    return asyncio.run(strategy(group, [play.another() for _ in range(starts)], play)), play


def test_a_failed_rollout_goes_on_before_its_answer(tmp_path: Path) -> None:
    made, probe = played(tmp_path, ["<think>12</think>4", "3</think>5"], 1, Probes(("x#",), 1.0, 1.0))[0]
    assert made.completion == "<think>12</think>4" and made.facts == {"probes": 1.0, "probes_right": 1.0}
    (turn,) = probe.turns
    assert turn.message.content == "<think>12x#3</think>5", "the end of the thought went with the answer"
    assert turn.prefix.tolist() == ids("<think>12") and turn.tokens.tolist() == ids("x#3</think>5|")
    assert turn.versions.tolist()[:2] == [-1, -1] and min(turn.versions[2:]) > 0
    assert probe.origin is Origin.BRANCHED and probe.parent == "0/0" and probe.num_sampled == probe.num_tokens - 2


def test_without_a_thought_and_in_a_later_turn(tmp_path: Path) -> None:
    """The answer is the last completion: it is resumed after the environment's answer."""
    made, probe = played(tmp_path, ["1", "2", "5"], 1, Probes(("x#",), 1.0, 1.0), turns=2)[0]
    assert [turn.message.content for turn in probe.turns] == ["1", "x#5"]
    assert [turn.num_prefix for turn in probe.turns] == [2, 0] and len(probe.turns[0].tokens) == 0
    assert probe.turns[1].prompt.tolist() == made.turns[1].prompt.tolist()
    assert probe.turns[1].tokens.tolist() == ids("x#5|") and probe.num_sampled == 2


def test_the_right_ones_and_a_share_of_the_wrong_ones_are_left_alone(tmp_path: Path) -> None:
    found, play = played(tmp_path, ["5"] * 4, 4, Probes(("x#",), 1.0, 1.0))
    assert len(found) == len(play.made) == 4 and found[0].facts == {"probes": 0.0, "probes_right": 0.0}
    _, some = played(tmp_path, ["4"] * 600, 300, Probes(("x#",), 0.2, 0.0))
    assert 40 <= len(some.made) - 300 <= 80
    brought, none = played(tmp_path, ["4"] * 300, 300, Probes(("x#",), 0.0, 1.0))
    assert len(brought) == len(none.made) == 300


def test_the_likeliest_words_stay_and_as_many_as_succeed(tmp_path: Path) -> None:
    """Of 8 failed rollouts all are probed; with q = 0.5 four stay, those whose words are likeliest."""
    found, play = played(tmp_path, ["4"] * 16, 8, Probes(("x#", "y#", "z#"), 1.0, 0.5))
    probes = [each for each in play.made.values() if each.origin is Origin.BRANCHED]
    kept = found[8:]
    assert len(probes) == 8 and len(kept) == 4 and len({each.completion[0] for each in probes}) > 1
    value = [LIKELY[each.completion[0]] for each in probes]
    assert sorted((LIKELY[each.completion[0]] for each in kept), reverse=True) == sorted(value, reverse=True)[:4]
    assert [each.id for each in kept] == sorted((each.id for each in kept), key=lambda id_: int(id_[2:]))
    sizes = [len(played(tmp_path, ["4"] * 4, 2, Probes(("x#",), 1.0, 0.25), number=at)[0]) - 2 for at in range(8)]
    assert set(sizes) == {0, 1}, "half a probe is one or none"


def test_probabilities_of_words_multiply_to_those_of_the_list(tmp_path: Path) -> None:
    """Three begin with `let `, two of them go on with `me `: 2/3 at that place and 1/2 where those part."""
    strategy = Probes(("let me see", "let me go", "let us", "wait"))
    strategy.meet(policy_of(save_folder(tmp_path), Recording([])))
    probabilities = np.exp(strategy.frequencies(0))
    assert probabilities[4] == pytest.approx(2 / 3) and probabilities[7] == pytest.approx(1 / 2)
    assert np.prod(probabilities) == pytest.approx(1 / 3) and np.prod(np.exp(strategy.frequencies(2))) == pytest.approx(
        1 / 3
    )
    assert strategy.frequencies(3).tolist() == [0.0] * 4, "no other prompt starts with w"


def probed(made: float, right: float, version: int) -> Group:
    group = replace(make_group([0.0, 0.0]), version=version)
    group.rollouts[0].facts = {"probes": made, "probes_right": right}
    return group


def test_the_average_is_updated_once_per_version_in_any_order() -> None:
    """0.08 -> 0.08 + 0.1 * (3/4 - 0.08) = 0.147 after version 0, then 0.147 + 0.1 * (0 - 0.147) = 0.1323."""
    groups = [probed(1, 1, 0), probed(3, 2, 0), probed(2, 0, 1), probed(0, 0, 1)]
    one, other = Probes(), Probes()
    for group in groups:
        one.observe(group)
    for group in reversed(groups):
        other.observe(group)
    for strategy in (one, other):
        assert [strategy.share(at) for at in (0, 1, 2, 9)] == pytest.approx([0.08, 0.147, 0.1323, 0.1323])
    again = Probes()
    again.restore(json.loads(json.dumps(one.state())))
    assert again.share(2) == one.share(2) and again.state() == one.state()
    for version in range(2, 70):
        one.observe(probed(1, 1, version))
    expected = 0.1323
    for _ in range(68):
        expected += 0.1 * (1 - expected)
    assert one.share(70) == pytest.approx(expected) and len(one.state()["told"]) == 64


def test_bad_input_is_refused() -> None:
    for fields, match in [
        ({"prompts": ()}, "at least 1 prompt"),
        ({"prompts": ("a", "")}, "no empty one"),
        ({"probability": 1.5}, r"got 1\.5, 0\.08 and 0\.1"),
        ({"success": -0.1}, r"got 0\.2, -0\.1"),
        ({"rate": 2.0}, r"0\.08 and 2\.0"),
    ]:
        with pytest.raises(ConfigurationError, match=match):
            Probes(**fields)  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError, match="meet"):
        Probes().frequencies(0)


def test_in_a_run_every_token_is_sampled_once(tmp_path: Path) -> None:
    engine, env = Counting(lambda prompt, key: f"<think>1 {key % 9}</think>77"), Hearing(Arithmetic(2))
    strategy = Probes(("wait, ",), 1.0, 0.5)
    found = flown(save_pocket_like(tmp_path / "model"), tmp_path / "ledger.db", strategy, engine, envs=(env,))
    probes = [each for each in found.rollouts.values() if each.origin is Origin.BRANCHED]
    assert len(probes) == 24, "all failed"
    for each in probes:
        root = found.rollouts[each.parent]
        assert each.turns[0].prefix.tolist() == root.turns[0].tokens[: each.turns[0].num_prefix].tolist()
        assert each.completion.startswith(root.completion.partition("</think>")[0] + "wait, <think>")
    assert sorted(found.heard) == sorted(each.completion for each in found.rollouts.values())
    assert found.row["share/branched"] > 0 and found.row["fact/probes"] == 3.0
