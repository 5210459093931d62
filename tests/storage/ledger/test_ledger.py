"""The ledger: every rollout has one fate, and a rollback restores the moment of a checkpoint exactly."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from strop.storage.ledger.ledger import Ledger
from strop.storage.ledger.turn_bytes import decode_turns, encode_turns
from strop.types import SUCCESS, Group, Message, Origin, Outcome, Rollout, Sampling, Task, ToolCall, Turn


def task(text: str) -> Task:
    return Task((Message("user", text),), "4", "test", 2)


def turn(text: str = "4", fresh: bool = False) -> Turn:
    return Turn(
        np.array([1, 2, 3]),
        np.array([7, 8]),
        np.array([-0.5, -1.25], dtype=np.float32),
        np.array([3, 4]),
        Message("assistant", text, (ToolCall("get", "red"),)),
        Sampling(temperature=0.7, top_k=5, stop=("\n",)),
        fresh,
        {"routes": np.arange(4, dtype=np.int16)},
    )


def group(number: int, failed: int = 0, size: int = 3) -> Group:
    each = [
        Rollout(
            f"{number}/{i}",
            task(str(number)),
            (turn(),),
            Outcome.FAILED if i < failed else Outcome.FINISHED,
            error="boom" if i < failed else "",
            reward=float(i),
            rewards={"outcome": float(i)},
            turn_rewards=(float(i),),
            facts={"median": i + 0.5, SUCCESS: min(float(i), 1.0)},
        )
        for i in range(size)
    ]
    return Group(number, task(str(number)), each)


def finish(ledger: Ledger, number: int, at: int, keep: bool = True, failed: int = 0) -> Group:
    made = group(number, failed)
    ledger.finished(made, made if keep and made.scored else None, "" if keep else "all equal", at)
    return made


def test_turns_come_back_as_they_were() -> None:
    turns = (turn("a"), turn("b", fresh=True))
    back = decode_turns(encode_turns(turns))
    for before, after in zip(turns, back, strict=True):
        for name in ("prompt", "tokens", "logprobs", "versions"):
            np.testing.assert_array_equal(getattr(before, name), getattr(after, name))
        assert (before.message, before.sampling, before.fresh) == (after.message, after.sampling, after.fresh)
        np.testing.assert_array_equal(before.aux["routes"], after.aux["routes"])


def test_no_turns_come_back_as_none() -> None:
    assert decode_turns(encode_turns(())) == ()


def test_its_history_has_all_rollouts_of_all_finished_groups(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger.db")
    for number in range(4):
        ledger.admitted(number, task(str(number)), number)
    for number in (2, 0, 1):
        finish(ledger, number, at=3, keep=number != 0, failed=number)
    found = list(ledger.history())
    assert [(each.number, each.version) for each in found] == [(0, 0), (1, 1), (2, 2)], "in the order of admission"
    assert [each.task for each in found] == [task("0"), task("1"), task("2")]
    assert [[t.is_scored for t in each.rollouts] for each in found] == [
        [True, True, True], [False, True, True], [False, False, True]]  # fmt: skip
    assert [t.rewards["outcome"] for t in found[0].rollouts] == [0.0, 1.0, 2.0], "dropped or not"


def test_each_rollout_has_one_fate(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger.db")
    for number in range(4):
        ledger.admitted(number, task(str(number)), 0)
    kept = finish(ledger, 0, at=0)
    finish(ledger, 1, at=0, keep=False)
    finish(ledger, 2, at=0, failed=3)
    ledger.trained([kept], 1)
    assert ledger.counts() == {"failed": 3, "gated": 3, "trained": 3}
    assert ledger.violations() == []
    assert [number for number, _, _ in ledger.running()] == [3]
    assert ledger.next_number == 4


def test_failed_rollouts_of_a_kept_group_are_never_trained(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger.db")
    ledger.admitted(0, task("0"), 0)
    ledger.trained([finish(ledger, 0, at=0, failed=1)], 1)
    assert ledger.counts() == {"failed": 1, "trained": 2}
    assert ledger.violations() == []


def test_violations_are_found(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger.db")
    ledger.admitted(0, task("0"), 0)
    finish(ledger, 0, at=0)
    ledger._database.execute("UPDATE rollouts SET fate='trained' WHERE id='0/0'")
    assert ledger.violations() == ["trained without a training: 1"]


def test_a_group_can_be_had_again_with_its_tokens(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger.db")
    ledger.admitted(0, task("0"), 0)
    made = finish(ledger, 0, at=0, failed=1)
    assert ledger.waiting() == {0: 0}
    back = ledger.group(0)
    assert [t.id for t in back.rollouts] == [t.id for t in made.scored]
    assert back.task == made.task
    assert [t.reward for t in back.rollouts] == [1.0, 2.0]
    assert all(t.origin is Origin.POLICY and t.turn_rewards == (t.reward,) for t in back.rollouts)
    assert [t.facts for t in back.rollouts] == [{"median": t.reward + 0.5, SUCCESS: 1.0} for t in back.rollouts]


def test_rollback_restores_the_moment_of_a_checkpoint(tmp_path: Path) -> None:
    """Groups 0, 1 trained at step 1; 2 waits, 3 runs; then step 2 and more happen, and are forgotten."""
    ledger = Ledger(tmp_path / "ledger.db")
    for number in range(4):
        ledger.admitted(number, task(str(number)), 0)
    ledger.trained([finish(ledger, 0, at=0), finish(ledger, 1, at=0)], 1)
    waiting = finish(ledger, 2, at=0)
    before = ledger.digest()
    late = finish(ledger, 3, at=1)
    ledger.admitted(4, task("4"), 1)
    finish(ledger, 4, at=1, keep=False)
    ledger.trained([waiting, late], 2)
    assert ledger.digest() != before
    ledger.rollback(1)
    assert ledger.digest() == before
    assert ledger.waiting() == {2: 0}
    assert [number for number, _, _ in ledger.running()] == [3]


def test_a_group_of_which_a_part_was_trained_before_does_not_wait_again(tmp_path: Path) -> None:
    """Its first rollout of step 1, the rest at step 2, which is undone."""
    ledger = Ledger(tmp_path / "ledger.db")
    ledger.admitted(0, task("0"), 0)
    made = finish(ledger, 0, at=0)
    ledger.trained([replace(made, rollouts=made.rollouts[:1])], 1)
    before = ledger.digest()
    ledger.trained([replace(made, rollouts=made.rollouts[1:])], 2)
    ledger.rollback(1)
    assert ledger.digest() == before and ledger.waiting() == {}


def test_rollback_to_the_beginning_forgets_everything(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger.db")
    empty = ledger.digest()
    ledger.admitted(0, task("0"), 0)
    ledger.trained([finish(ledger, 0, at=0)], 1)
    ledger.rollback(0)
    assert ledger.digest() == empty


def test_a_pruned_rollout_has_no_reward_and_is_never_trained(tmp_path: Path) -> None:
    """Kept beside others it has no place; alone it makes a gated group, not a failed one."""
    ledger = Ledger(tmp_path / "ledger.db")
    for number, pruned in ((0, 1), (1, 3)):
        ledger.admitted(number, task(str(number)), 0)
        made = group(number)
        for rollout in made.rollouts[:pruned]:
            rollout.outcome = Outcome.PRUNED
        ledger.finished(made, made if made.scored else None, "", 0)
        ledger.trained([made] if made.scored else [], 1)
    rows = ledger._database.execute("SELECT id, reward, fate FROM rollouts WHERE outcome='pruned' ORDER BY id")
    assert rows.fetchall() == [(name, None, "gated") for name in ("0/0", "1/0", "1/1", "1/2")]
    assert ledger._database.execute("SELECT fate FROM groups ORDER BY number").fetchall() == [("trained",), ("gated",)]
    assert ledger.violations() == []
    ledger._database.execute("UPDATE rollouts SET fate='trained' WHERE id='0/0'")
    assert "pruned rollout trained: 1" in ledger.violations()


def test_successes_are_right_rollouts_of_the_policy_by_task(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger.db")
    for number in (0, 1):
        ledger.admitted(number, task(str(number)), 0)
        made = group(number)
        for rollout, reward in zip(made.rollouts, (1.0, 0.5, 1.0), strict=True):
            rollout.reward, rollout.rewards, rollout.facts = reward, {"by_length": reward}, {SUCCESS: reward}
        made.rollouts[0].origin = Origin.TEACHER if number else Origin.POLICY
        made.rollouts[2].outcome = Outcome.FINISHED if number else Outcome.FAILED
        ledger.finished(made, made, "", 0)
    assert ledger.successes(1.0) == {task("0").id: ["0/0"], task("1").id: ["1/2"]}
    assert ledger.successes(0.5) == {task("0").id: ["0/0", "0/1"], task("1").id: ["1/1", "1/2"]}
    found = ledger.rollout("1/1")
    assert found.reward == 0.5 and found.task == task("1") and found.num_tokens == group(1).rollouts[1].num_tokens


def test_right_is_a_success_whatever_else_was_added(tmp_path: Path) -> None:
    """A right answer that was too long, and a wrong one that another judge liked."""
    ledger = Ledger(tmp_path / "ledger.db")
    for number, name in enumerate(("outcome", "checked")):
        ledger.admitted(number, task(str(number)), 0)
        made = group(number)
        for rollout, paid, added in zip(made.rollouts, (1.0, 0.0, 1.0), (-0.5, 1.0, 0.0), strict=True):
            rollout.reward, rollout.facts = paid + added, {SUCCESS: paid}
            rollout.rewards = {name: paid, "other": added}
        made.rollouts[2].outcome = Outcome.PRUNED
        ledger.finished(made, made, "", 0)
    assert ledger.successes(1.0) == {task("0").id: ["0/0"], task("1").id: ["1/0"]}
