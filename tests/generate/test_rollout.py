"""How attempts end: by the world, by a limit, by a failure of the world, or by one that must stop the run."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import pytest

from strop.errors import ConfigurationError, DataError
from strop.generate.agents.chat import Chat
from strop.generate.agents.demonstrator import Demonstrate
from strop.generate.engines.scripted import Scripted
from strop.generate.limits import Limits
from strop.generate.policy import Policy
from strop.generate.rollout import Begun, play
from strop.generate.strategies.independent import Independent
from strop.roles import World
from strop.types import Group, Message, Observation, Origin, Outcome, Start, Task, Trajectory
from tests.generate.talking import TASK, Recording, policy_of, run, save_folder

START = Start("g-0", 7)


@dataclass
class Echo(World):
    """A world that asks `more` until it hears the answer; it raises where it is told to and notes its calls."""

    pays: bool = True
    broken: dict[str, Exception] = field(default_factory=dict)
    calls: list[str] = field(default_factory=list)
    name: ClassVar[str] = "echo"
    level: ClassVar[int] = 0

    def task(self, index: int, heldout: bool = False) -> Task:
        return TASK

    def environment(self) -> Echo:
        self._call("environment")
        return self

    def check(self, task: Task, reply: str) -> float:
        return float(reply == task.answer)

    async def reset(self, task: Task) -> None:
        self._call("reset")

    async def step(self, reply: Message) -> Observation:
        self._call(f"step {reply.content}")
        is_right = reply.content == TASK.answer
        return Observation((Message("user", "more"),), is_right, float(is_right) if self.pays else None)

    async def close(self) -> None:
        self._call("close")

    def demonstrate(self) -> Message:
        self._call("demonstrate")
        return Message("assistant", TASK.answer if "step 3" in self.calls else "3")

    def _call(self, name: str) -> None:
        self.calls.append(name)
        if name in self.broken:
            raise self.broken[name]


def played(
    folder: Path, world: Any, replies: list[str], agent: Any = None, start: Start = START, **more: Any
) -> Trajectory:
    policy = policy_of(save_folder(folder), Recording(replies), **more)
    attempt: Trajectory = run(play(agent or Chat(), world, policy.dialogue(TASK, start)))
    return attempt


def test_the_world_ends_a_finished_attempt(tmp_path: Path) -> None:
    world = Echo()
    attempt = played(tmp_path, world, ["2|", "3|", "4|"])
    assert attempt.outcome is Outcome.FINISHED and attempt.origin is Origin.POLICY and attempt.id == "g-0"
    assert attempt.turn_rewards == (0.0, 0.0, 1.0) and attempt.reply == "4" and attempt.num_tokens == 6
    assert world.calls == ["environment", "reset", "step 2", "step 3", "step 4", "close"]


def test_a_world_that_does_not_pay_leaves_no_turn_rewards(tmp_path: Path) -> None:
    assert played(tmp_path, Echo(pays=False), ["3|", "4|"]).turn_rewards == ()


def test_turn_limit_reply_limit_and_full_context_truncate(tmp_path: Path) -> None:
    assert played(tmp_path, Echo(), ["2|"] * 3, Chat(max_turns=3)).outcome is Outcome.TRUNCATED
    cut = played(tmp_path, world := Echo(), ["2222222"], max_tokens=5)
    assert cut.outcome is Outcome.TRUNCATED and cut.reply == "22222"
    assert world.calls[-2:] == ["step 22222", "close"], "the world sees a cut reply and may pay for it"
    full = played(tmp_path, Echo(), ["2|"] * 8, context=130)
    assert full.outcome is Outcome.TRUNCATED and 0 < len(full.turns) < 8
    assert sum(len(turn.prompt) + len(turn.tokens) for turn in full.turns) <= 130


def test_turns_that_may_not_be_spent_truncate(tmp_path: Path) -> None:
    for most_turns, count in ((0, 3), (2, 2), (5, 3)):
        policy = policy_of(save_folder(tmp_path), Recording(["1|", "2|", f"{TASK.answer}|"]))
        attempt: Trajectory = run(play(Chat(), Echo(), policy.dialogue(TASK, START, Limits(most_turns))))
        assert len(attempt.turns) == count
        assert attempt.outcome is (Outcome.FINISHED if count == 3 else Outcome.TRUNCATED)


def test_a_reply_that_ends_exactly_with_the_context_is_finished(tmp_path: Path) -> None:
    policy = policy_of(save_folder(tmp_path), Recording(["4|"]))
    room = len(policy.template.opening(TASK.messages)) + 2
    assert played(tmp_path, Echo(), ["4|"], context=room).outcome is Outcome.FINISHED


@pytest.mark.parametrize("where", ["environment", "reset", "step 3", "close"])
def test_what_the_world_breaks_is_a_failed_attempt_and_it_is_closed(tmp_path: Path, where: str) -> None:
    world = Echo(broken={where: OSError("box is gone")})
    attempt = played(tmp_path, world, ["2|", "3|", "4|"])
    assert attempt.outcome is Outcome.FAILED and attempt.error == "world echo: OSError: box is gone"
    assert attempt.turn_rewards == () and attempt.reward == 0.0
    assert len(attempt.turns) == {"environment": 0, "reset": 0, "step 3": 2, "close": 3}[where], "turns so far are kept"
    assert world.calls[-1] == ("environment" if where == "environment" else "close")


def test_the_first_failure_is_told_when_closing_fails_too(tmp_path: Path) -> None:
    world = Echo(broken={"step 2": OSError("first"), "close": OSError("second")})
    assert played(tmp_path, world, ["2|"]).error == "world echo: OSError: first"


def test_errors_of_engine_and_configuration_stop_the_run_and_close_the_world(tmp_path: Path) -> None:
    class Broken(Recording):
        async def sample(self, *args: Any) -> Any:
            raise RuntimeError("engine is gone")

    world = Echo()
    with pytest.raises(RuntimeError, match="engine is gone"):
        run(play(Chat(), world, policy_of(save_folder(tmp_path), Broken([])).dialogue(TASK, START)))
    assert world.calls[-1] == "close"
    with pytest.raises(DataError, match="no such file"):
        played(tmp_path, Echo(broken={"reset": DataError("no such file")}), [])


def test_a_cancelled_attempt_stays_cancelled_though_closing_fails(tmp_path: Path) -> None:
    world = Echo(broken={"close": OSError("gone")})
    engine = Scripted({"": "2"}, seconds_per_token=60.0)
    engine.open(save_folder(tmp_path))

    async def cancel() -> None:
        playing = asyncio.create_task(play(Chat(), world, policy_of(tmp_path, engine).dialogue(TASK, START)))
        await asyncio.sleep(0.01)
        playing.cancel()
        await playing

    with pytest.raises(asyncio.CancelledError):
        run(cancel())
    assert world.calls[-1] == "close"


def test_an_aborted_reply_prunes_the_attempt(tmp_path: Path) -> None:
    engine = Scripted({"": "2222"}, seconds_per_token=0.02)
    engine.open(save_folder(tmp_path))

    async def abort() -> Trajectory:
        playing = asyncio.create_task(play(Chat(), Echo(), policy_of(tmp_path, engine).dialogue(TASK, START)))
        await asyncio.sleep(0.05)
        engine.abort(START.key)
        return await playing

    attempt = run(abort())
    assert attempt.outcome is Outcome.PRUNED and 0 < attempt.num_tokens < 5


def test_a_demonstration_is_the_teachers(tmp_path: Path) -> None:
    world = Echo()
    attempt = played(tmp_path, world, [], Demonstrate())
    assert attempt.origin is Origin.TEACHER and attempt.outcome is Outcome.FINISHED
    assert [turn.message.content for turn in attempt.turns] == ["3", "4"] and attempt.turn_rewards == (0.0, 1.0)
    assert {int(version) for turn in attempt.turns for version in turn.versions} == {-1}
    failed = played(tmp_path, Echo(broken={"demonstrate": KeyError("x")}), [], Demonstrate())
    assert failed.outcome is Outcome.FAILED and failed.error.startswith("world echo: KeyError")


def test_a_world_that_cannot_demonstrate_is_a_configuration_error(tmp_path: Path) -> None:
    class Mute:
        name, level = "mute", 0

        def environment(self) -> Mute:
            return self

        async def reset(self, task: Task) -> None: ...
        async def close(self) -> None: ...

    with pytest.raises(ConfigurationError, match="Mute has no demonstrate"):
        played(tmp_path, Mute(), [], Demonstrate())


def test_a_resumed_attempt_brings_the_world_to_where_it_was(tmp_path: Path) -> None:
    first = played(tmp_path, Echo(), ["2|"], Chat(max_turns=1))
    world = Echo()
    start = Start("g-1", 9, first.turns, Origin.RESUMED)
    attempt = played(tmp_path, world, ["4|"], start=start)
    assert world.calls == ["environment", "reset", "step 2", "step 4", "close"]
    assert attempt.turns[0] is first.turns[0] and attempt.turn_rewards == (0.0, 1.0)
    assert attempt.origin is Origin.RESUMED and attempt.outcome is Outcome.FINISHED


def test_an_attempt_resumed_inside_a_reply_shows_the_world_the_whole_reply(tmp_path: Path) -> None:
    begun = played(tmp_path, Echo(), ["2222"], max_tokens=2).turns
    world = Echo()
    attempt = played(tmp_path, world, ["5|", "4|"], start=Start("g-1", 9, begun, Origin.RESUMED))
    assert world.calls == ["environment", "reset", "step 225", "step 4", "close"]
    assert [len(turn.tokens) for turn in attempt.turns] == [4, 2]


def test_independent_attempts_run_together_and_keep_their_order(tmp_path: Path) -> None:
    engine = Scripted(lambda prompt, key: "4" * (5 - key), seconds_per_token=0.01)
    engine.open(save_folder(tmp_path))
    policy: Policy = policy_of(tmp_path, engine)
    ended: list[str] = []

    async def one(start: Start) -> Trajectory:
        attempt = await play(Chat(max_turns=1), Echo(), policy.dialogue(TASK, start))
        ended.append(attempt.id)
        return attempt

    attempts = run(Independent()(Group(0, TASK, []), [Start(str(key), key) for key in range(4)], one))
    assert [attempt.id for attempt in attempts] == ["0", "1", "2", "3"]
    assert ended == ["3", "2", "1", "0"], "the shortest reply was not held up by the others"


def test_a_crash_of_one_independent_attempt_is_seen() -> None:
    async def one(start: Start) -> Trajectory:
        if start.key == 1:
            raise RuntimeError("engine is gone")
        await asyncio.sleep(60)
        raise AssertionError("must have been cancelled")

    with pytest.raises(ExceptionGroup) as caught:
        run(Independent()(Group(0, TASK, []), [Start("0", 0), Start("1", 1)], one))
    assert "engine is gone" in str(caught.value.exceptions[0])


def test_chat_refuses_no_turns() -> None:
    with pytest.raises(ConfigurationError, match="max_turns >= 1, got 0"):
        Chat(max_turns=0)


async def _work(*waits: float | None) -> list[str]:
    """Waits for a while, or for one pass of the loop where that is None; says who else ran meanwhile."""
    seen: list[str] = []
    for seconds in waits:
        asyncio.get_running_loop().call_soon(seen.append, "another")
        await asyncio.sleep(0 if seconds is None else seconds)
    return seen


def test_a_coroutine_that_was_begun_goes_on_as_if_it_were_awaited() -> None:
    async def main() -> None:
        at_once = Begun(_work())
        assert at_once.is_done and at_once.result == []
        for waits in ((None,), (None, None), (0.001, None, 0.001)):
            begun = Begun(_work(*waits))
            assert not begun.is_done and await begun == ["another"] * len(waits)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.01):
                await Begun(_work(60.0))
        with pytest.raises(ZeroDivisionError):
            Begun(_broken())

    asyncio.run(main())


async def _broken() -> None:
    raise ZeroDivisionError
