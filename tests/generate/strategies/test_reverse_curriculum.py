"""R3: where rollouts begin, stage by stage and mixed; what is given is read, heard once and never trained."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from strop.environments.bundled.arithmetic import Arithmetic
from strop.errors import ConfigurationError
from strop.generate.agents.chat import Chat
from strop.generate.agents.demonstrator import Demonstrate
from strop.generate.group_rollouts import GroupPlayer
from strop.generate.strategies.reverse_curriculum import ReverseCurriculum
from strop.generate.turn_ops import cut
from strop.types import Group, Message, Origin, Outcome, Rollout
from tests.building import make_group, turn
from tests.generate.strategies.flowing import Counting, Hearing, flown
from tests.generate.talking import TASK, Recording, ids, policy_of, save_folder
from tests.recipes.rollout.test_ettrl import Completions
from tests.tiny_models import save_pocket_like


class Shown(Completions):
    """An environment of two completions, `wxyz` and `ef`: eight tokens with their ends."""

    def demonstrate(self) -> Message:
        return Message("assistant", "wxyz" if self.heard == 0 else "ef")


def played(
    folder: Path,
    strategy: ReverseCurriculum,
    count: int,
    number: int = 0,
    version: int = 0,
    env: Completions | None = None,
    before: int = 0,
) -> tuple[list[Rollout], GroupPlayer]:
    async def score(group: Group) -> None:
        return None

    policy = policy_of(save_folder(folder), Recording(["1|"] * 3 * count))
    group = Group(number, TASK, make_group([0.0] * before).rollouts, version)
    play = GroupPlayer(group, policy, (env or Shown(2),), Chat(), 0, score)
    return asyncio.run(strategy(group, [play.another() for _ in range(count)], play)), play


def given_of(rollouts: list[Rollout]) -> list[int]:
    return [sum(turn.num_prefix for turn in rollout.turns) for rollout in rollouts]


def test_places_are_evenly_spaced_and_take_turns(tmp_path: Path) -> None:
    """8 tokens (wxyz| and ef|) and 3 cuts: after 2, 4 and 6 of them; rollouts 4 to 8 of a run begin with place 1."""
    found, play = played(tmp_path, ReverseCurriculum(Demonstrate(), 3), 5, number=1)
    assert given_of(found) == [2, 4, 6, 0, 2]
    assert [each.origin for each in found] == [Origin.BRANCHED] * 3 + [Origin.POLICY, Origin.BRANCHED]
    assert [each.parent for each in found] == ["1/5"] * 3 + ["", "1/5"]
    early, late, later = found[0], found[1], found[2]
    assert [turn.message.content for turn in early.turns] == ["wx1", "1"]
    assert [turn.tokens.tolist() for turn in early.turns] == [ids("1|"), ids("1|")]
    assert [turn.message.content for turn in late.turns] == ["wxyz1", "1"], "its end is not given"
    assert [turn.message.content for turn in later.turns] == ["wxyz", "e1"], "in the middle of a later completion"
    assert later.turns[0].prefix.tolist() == ids("wxyz|") and later.num_tokens == 2
    assert [each.facts["shared"] for each in found] == pytest.approx([2 / 6, 4 / 8, 6 / 8, 0, 2 / 6])
    (shown,) = play.unused(found)
    assert shown.id == "1/5" and shown.origin is Origin.TEACHER and shown.num_sampled == 0


def test_every_start_has_the_same_share(tmp_path: Path) -> None:
    counts = [
        given
        for number in range(3)
        for given in given_of(played(tmp_path, ReverseCurriculum(Demonstrate(), 3), 4, number)[0])
    ]
    assert sorted(counts) == [0] * 3 + [2] * 3 + [4] * 3 + [6] * 3


def test_a_later_wave_goes_on_where_the_first_one_ended(tmp_path: Path) -> None:
    found, _ = played(tmp_path, ReverseCurriculum(Demonstrate(), 3), 2, before=2)
    assert given_of(found) == [4, 6], "the first wave of two had the prompt and 2 tokens"


def test_stages_go_from_the_last_place_to_the_prompt(tmp_path: Path) -> None:
    strategy = ReverseCurriculum(Demonstrate(), places=2, every=3)
    found = [given_of(played(tmp_path, strategy, 2, version=version)[0]) for version in range(8)]
    assert found == [[5, 5]] * 3 + [[2, 2]] * 3 + [[0, 0]] * 2  # 8 tokens in thirds, rounded down
    _, play = played(tmp_path, strategy, 2, version=6)
    assert len(play.made) == 2, "nothing is shown where nothing is given"


def test_what_the_env_fails_is_not_begun_with(tmp_path: Path) -> None:
    found, _ = played(tmp_path, ReverseCurriculum(Demonstrate(), 3), 4, env=Shown(2, is_broken=True))
    assert given_of(found) == [0] * 4 and {each.outcome for each in found} == {Outcome.FAILED}


def test_bad_input_is_told(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="got 0 and 0"):
        ReverseCurriculum(Demonstrate(), 0)
    with pytest.raises(ConfigurationError, match="got 5 and -1"):
        ReverseCurriculum(Demonstrate(), every=-1)
    with pytest.raises(ConfigurationError, match=r"Completions has no demonstrate\(\), so nothing can be shown"):
        played(tmp_path, ReverseCurriculum(Demonstrate(), 3), 4, env=Completions(1))
    with pytest.raises(ConfigurationError, match="own demonstration earns only 0, need at least 1"):
        played(tmp_path, ReverseCurriculum(Demonstrate(least=1.0), 3), 4)
    with pytest.raises(ValueError, match="after 4 written tokens of a rollout that has 3"):
        cut([turn(2), turn(1)], 4)
    with pytest.raises(ValueError, match="after -1 written"):
        cut([turn(2)], -1)


def test_in_a_run_given_tokens_are_heard_once_and_never_trained(tmp_path: Path) -> None:
    """Sums of three numbers: `<think>`, two steps, `</think>` and the answer."""
    engine = Counting(lambda prompt, key: "1" * (key % 4) + "</think>7")
    env = Hearing(Arithmetic(2))
    strategy = ReverseCurriculum(Demonstrate(least=1.0), 2)
    model = save_pocket_like(tmp_path / "model")
    found = flown(model, tmp_path / "ledger.db", strategy, engine, envs=(env,))
    for group in found.groups:
        shown = found.rollouts[f"{group.number}/3"]
        right = env.solution(group.task)
        assert shown.outcome is Outcome.PRUNED and shown.completion == right and shown.num_sampled == 0
        cuts = [index * shown.num_tokens // 3 for index in range(3)]
        begun = [rollout.turns[0].prefix.tolist() for rollout in group.rollouts]
        assert begun == [shown.turns[0].tokens[:at].tolist() for at in cuts]
    assert sorted(found.heard) == sorted(each.completion for each in found.rollouts.values())
    assert found.row["share/branched"] == pytest.approx(2 / 3) and 0 < found.row["fact/shared"] < 1
    with pytest.raises(ConfigurationError, match="own demonstration earns only 0, need at least 1"):
        wrong = (Hearing(Arithmetic(2), is_right=False),)
        flown(model, tmp_path / "other.db", strategy, Counting(lambda prompt, key: "7"), envs=wrong)
