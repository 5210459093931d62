"""Recursive tournament voting by hand: comparisons, byes, shuffled votes, coins; and what a second round reads."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from strop.environments.bundled.arithmetic import Arithmetic
from strop.errors import ConfigurationError
from strop.recipes.replay.rtv_pdr import Summarized, Tournament
from strop.types import Message, Origin, Outcome, Task
from tests.building import make_group
from tests.generate.asking import asked_of, player_of
from tests.generate.critic import Critic

ENV = Arithmetic(3)
TASK = Task((Message("user", "12+34=?"),), "46", "arithmetic", 3)


def noted(count: int, failed: list[int] | None = None) -> list[Summarized]:
    rollouts = make_group([0.0] * count, failed=failed or []).rollouts
    return [(rollout, f"note {place}") for place, rollout in enumerate(rollouts)]


def left(
    folder: Path, critic: Critic, candidates: list[Summarized], count: int = 1, votes: int = 8
) -> tuple[list[str], int]:
    play, _ = player_of(folder, ENV, TASK, lambda prompt, call: "46")
    found, times = asyncio.run(Tournament(critic, votes=votes).survivors(TASK, candidates, count, play))
    return [note for _, note in found], times


def for_note(name: str) -> Critic:
    """Votes for one note wherever it stands, else for the first."""
    return Critic({"vote": lambda read: "2" if read["other"] == name else "1"})


@pytest.mark.parametrize("count", [1, 2, 3, 5, 8, 16])
def test_n_candidates_use_n_minus_1_comparisons_and_who_wins_every_vote_is_left(tmp_path: Path, count: int) -> None:
    for best in {0, count // 2, count - 1}:
        critic = for_note(f"note {best}")
        assert left(tmp_path, critic, noted(count)) == ([f"note {best}"], count - 1)
        assert len(critic.asked) == 8 * (count - 1)


def test_k_are_left_after_n_minus_k_comparisons(tmp_path: Path) -> None:
    found, times = left(tmp_path, for_note("note 6"), noted(16), count=4)
    assert len(found) == 4 and times == 12 and "note 6" in found
    assert left(tmp_path, for_note(""), noted(3), count=4) == (["note 0", "note 1", "note 2"], 0)
    for many, kept in ((5, 4), (7, 4), (7, 5), (9, 2)):
        found, times = left(tmp_path, for_note(""), noted(many), count=kept)
        assert len(found) == kept and times == many - kept, "no pair is compared that leaves too few"


def test_the_order_is_shuffled_for_every_vote_so_that_places_win_nothing(tmp_path: Path) -> None:
    critic, winners = Critic({"vote": "1 is better"}), list[str]()
    play, _ = player_of(tmp_path, ENV, TASK, lambda prompt, call: "46")
    for _ in range(60):
        found, _ = asyncio.run(Tournament(critic, votes=3).survivors(TASK, noted(2), 1, play))
        winners.append(found[0][1])
    firsts = [read["ideas"] for read in critic.asked]
    assert 0.4 < firsts.count("note 0") / len(firsts) < 0.6 and 15 < winners.count("note 0") < 46


def test_where_nobody_votes_a_coin_decides_and_the_same_one_again(tmp_path: Path) -> None:
    silent = [left(tmp_path, Critic({}), noted(8))[0] for _ in range(2)]
    assert silent[0] == silent[1]
    play, _ = player_of(tmp_path, ENV, TASK, lambda prompt, call: "46")
    coins = [
        asyncio.run(Tournament(Critic({}), votes=1).survivors(TASK, noted(2), 1, play))[0][0][1] for _ in range(40)
    ]
    assert 8 < coins.count("note 0") < 32


def test_what_the_env_failed_does_not_play(tmp_path: Path) -> None:
    assert left(tmp_path, for_note("note 1"), noted(3, failed=[0])) == (["note 1"], 1)
    found, times = left(tmp_path, for_note(""), noted(2, failed=[0, 1]))
    assert (found, times) == (["note 0"], 0)


def test_the_second_round_reads_the_best_notes_in_fresh_envs(tmp_path: Path) -> None:
    """Three rollouts say 1, 2 and 3; two notes are read; of the second round the last one wins."""
    critic = Critic(
        {"note": lambda read: f"n{read['completion'][:1]}", "vote": lambda read: "12"[read["other"] > read["ideas"]]}
    )
    play, engine = player_of(tmp_path, ENV, TASK, lambda prompt, call: str(call + 1))
    start = play.another()
    (winner,) = asyncio.run(Tournament(critic, rollouts=3, kept=2, votes=1)(play.group, [start], play))
    assert [("hint" in prompt, prompt.count("n2 n3")) for prompt in engine.prompts] == [(False, 0)] * 3 + [
        (True, 1)
    ] * 3
    assert "12+34=? hint: n2 n3<|end|>" in engine.prompts[3]
    assert winner.completion == "6" and winner.origin is Origin.GUIDED and winner.outcome is Outcome.FINISHED
    assert winner.facts == {"comparisons": 3.0, "notes": 2.0} and start.id in play.made
    rollouts = [each for each in play.made.values() if each.turns]
    assert len(rollouts) == 6 and all(len(each.turns) == 1 for each in rollouts), (
        "nothing goes on in an old environment"
    )


def test_it_says_how_many_notes_the_last_round_read(tmp_path: Path) -> None:
    """Of three notes of two letters, two fit into five characters; one round reads none."""
    for rounds, longest, count in ((1, 200, 0.0), (2, 200, 3.0), (2, 5, 2.0)):
        play, _ = player_of(tmp_path, ENV, TASK, lambda prompt, call: str(call + 1))
        notes = Critic({"note": lambda read: f"n{read['completion'][:1]}"})
        search = Tournament(notes, rollouts=3, kept=3, rounds=rounds, votes=1, longest=longest)
        (winner,) = asyncio.run(search(play.group, [play.another()], play))
        assert winner.facts["notes"] == count and (winner.origin is Origin.GUIDED) == (count > 0)


def test_bad_numbers_are_refused() -> None:
    for bad in ({"rollouts": 0}, {"kept": 0}, {"rounds": 0}, {"votes": 0}, {"asks": "{question}"}):
        with pytest.raises(ConfigurationError, match="Tournament needs"):
            Tournament(None, **bad)  # type: ignore[arg-type]


def test_what_tournaments_side_by_side_ask_does_not_depend_on_who_is_done_first(tmp_path: Path) -> None:
    search = Tournament(None, rollouts=3, kept=2, votes=2)
    first = asked_of(tmp_path, ENV, TASK, search, lambda key: 0)
    for late in (lambda key: key % 7, lambda key: 50 - key % 50):
        assert asked_of(tmp_path, ENV, TASK, search, late) == first
