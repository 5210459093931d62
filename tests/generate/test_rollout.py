"""How rollouts end: by the environment, by a limit, by a failure of the environment, or by one that must stop the
run.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

from strop.errors import ConfigurationError, DataError
from strop.generate.agents.chat import Chat
from strop.generate.agents.demonstrator import Demonstrate
from strop.generate.bounded_work import Begun
from strop.generate.engines.scripted import Scripted
from strop.generate.policy import Policy
from strop.generate.rollout import play
from strop.generate.rollout_limits import Limits
from strop.generate.strategies.independent import Independent
from strop.roles import Environment
from strop.types import Group, Message, Observation, Origin, Outcome, Rollout, Start, Task
from tests.generate.talking import TASK, Recording, policy_of, run, save_folder

START = Start("g-0", 7)


@dataclass
class Echo(Environment):
    """An environment that asks `more` until it hears the answer; it raises where it is told to and notes its calls."""

    pays: bool = True
    broken: dict[str, Exception] = field(default_factory=dict)
    calls: list[str] = field(default_factory=list)
    name: ClassVar[str] = "echo"
    level: ClassVar[int] = 0

    def task(self, index: int, heldout: bool = False) -> Task:
        return TASK

    def episode(self) -> Echo:
        self._call("episode")
        return self

    def check(self, task: Task, completion: str) -> float:
        return float(completion == task.answer)

    async def reset(self, task: Task) -> None:
        self._call("reset")

    async def step(self, completion: Message) -> Observation:
        self._call(f"step {completion.content}")
        is_right = completion.content == TASK.answer
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
    folder: Path, env: Any, completions: list[str], agent: Any = None, start: Start = START, **more: Any
) -> Rollout:
    policy = policy_of(save_folder(folder), Recording(completions), **more)
    rollout: Rollout = run(play(agent or Chat(), env, policy.dialogue(TASK, start)))
    return rollout


def test_the_env_ends_a_finished_rollout(tmp_path: Path) -> None:
    env = Echo()
    rollout = played(tmp_path, env, ["2|", "3|", "4|"])
    assert rollout.outcome is Outcome.FINISHED and rollout.origin is Origin.POLICY and rollout.id == "g-0"
    assert rollout.turn_rewards == (0.0, 0.0, 1.0) and rollout.completion == "4" and rollout.num_tokens == 6
    assert env.calls == ["episode", "reset", "step 2", "step 3", "step 4", "close"]


def test_a_env_that_does_not_pay_leaves_no_turn_rewards(tmp_path: Path) -> None:
    assert played(tmp_path, Echo(pays=False), ["3|", "4|"]).turn_rewards == ()


def test_turn_limit_completion_limit_and_full_context_truncate(tmp_path: Path) -> None:
    assert played(tmp_path, Echo(), ["2|"] * 3, Chat(max_turns=3)).outcome is Outcome.TRUNCATED
    cut = played(tmp_path, env := Echo(), ["2222222"], max_tokens=5)
    assert cut.outcome is Outcome.TRUNCATED and cut.completion == "22222"
    assert env.calls[-2:] == ["step 22222", "close"], "the environment sees a cut completion and may pay for it"
    full = played(tmp_path, Echo(), ["2|"] * 8, context=130)
    assert full.outcome is Outcome.TRUNCATED and 0 < len(full.turns) < 8
    assert sum(len(turn.prompt) + len(turn.tokens) for turn in full.turns) <= 130


def test_turns_that_may_not_be_spent_truncate(tmp_path: Path) -> None:
    for most_turns, count in ((0, 3), (2, 2), (5, 3)):
        policy = policy_of(save_folder(tmp_path), Recording(["1|", "2|", f"{TASK.answer}|"]))
        rollout: Rollout = run(play(Chat(), Echo(), policy.dialogue(TASK, START, Limits(most_turns))))
        assert len(rollout.turns) == count
        assert rollout.outcome is (Outcome.FINISHED if count == 3 else Outcome.TRUNCATED)


def test_a_completion_that_ends_exactly_with_the_context_is_finished(tmp_path: Path) -> None:
    policy = policy_of(save_folder(tmp_path), Recording(["4|"]))
    room = len(policy.template.opening(TASK.messages)) + 2
    assert played(tmp_path, Echo(), ["4|"], context=room).outcome is Outcome.FINISHED


@pytest.mark.parametrize("where", ["episode", "reset", "step 3", "close"])
def test_what_the_env_breaks_is_a_failed_rollout_and_it_is_closed(tmp_path: Path, where: str) -> None:
    env = Echo(broken={where: OSError("sandbox is gone")})
    rollout = played(tmp_path, env, ["2|", "3|", "4|"])
    assert rollout.outcome is Outcome.FAILED and rollout.error == "environment echo: OSError: sandbox is gone"
    assert rollout.turn_rewards == () and rollout.reward == 0.0
    assert len(rollout.turns) == {"episode": 0, "reset": 0, "step 3": 2, "close": 3}[where], "turns so far are kept"
    assert env.calls[-1] == ("episode" if where == "episode" else "close")


def test_the_first_failure_is_told_when_closing_fails_too(tmp_path: Path) -> None:
    env = Echo(broken={"step 2": OSError("first"), "close": OSError("second")})
    assert played(tmp_path, env, ["2|"]).error == "environment echo: OSError: first"


def test_errors_of_engine_and_configuration_stop_the_run_and_close_the_env(tmp_path: Path) -> None:
    class Broken(Recording):
        async def sample(self, *args: Any) -> Any:
            raise RuntimeError("engine is gone")

    env = Echo()
    with pytest.raises(RuntimeError, match="engine is gone"):
        run(play(Chat(), env, policy_of(save_folder(tmp_path), Broken([])).dialogue(TASK, START)))
    assert env.calls[-1] == "close"
    with pytest.raises(DataError, match="no such file"):
        played(tmp_path, Echo(broken={"reset": DataError("no such file")}), [])


def test_a_cancelled_rollout_stays_cancelled_though_closing_fails(tmp_path: Path) -> None:
    env = Echo(broken={"close": OSError("gone")})
    engine = Scripted({"": "2"}, seconds_per_token=60.0)
    engine.open(save_folder(tmp_path))

    async def cancel() -> None:
        playing = asyncio.create_task(play(Chat(), env, policy_of(tmp_path, engine).dialogue(TASK, START)))
        await asyncio.sleep(0.01)
        playing.cancel()
        await playing

    with pytest.raises(asyncio.CancelledError):
        run(cancel())
    assert env.calls[-1] == "close"


def test_an_aborted_completion_prunes_the_rollout(tmp_path: Path) -> None:
    engine = Scripted({"": "2222"}, seconds_per_token=0.02)
    engine.open(save_folder(tmp_path))

    async def abort() -> Rollout:
        playing = asyncio.create_task(play(Chat(), Echo(), policy_of(tmp_path, engine).dialogue(TASK, START)))
        await asyncio.sleep(0.05)
        engine.abort(START.key)
        return await playing

    rollout = run(abort())
    assert rollout.outcome is Outcome.PRUNED and 0 < rollout.num_tokens < 5


def test_a_demonstration_is_the_teachers(tmp_path: Path) -> None:
    env = Echo()
    rollout = played(tmp_path, env, [], Demonstrate())
    assert rollout.origin is Origin.TEACHER and rollout.outcome is Outcome.FINISHED
    assert [turn.message.content for turn in rollout.turns] == ["3", "4"] and rollout.turn_rewards == (0.0, 1.0)
    assert {int(version) for turn in rollout.turns for version in turn.versions} == {-1}
    failed = played(tmp_path, Echo(broken={"demonstrate": KeyError("x")}), [], Demonstrate())
    assert failed.outcome is Outcome.FAILED and failed.error.startswith("environment echo: KeyError")


def test_a_env_that_cannot_demonstrate_is_a_configuration_error(tmp_path: Path) -> None:
    class Mute:
        name, level = "mute", 0

        def episode(self) -> Mute:
            return self

        async def reset(self, task: Task) -> None: ...
        async def close(self) -> None: ...

    with pytest.raises(ConfigurationError, match="Mute has no demonstrate"):
        played(tmp_path, Mute(), [], Demonstrate())


def test_a_resumed_rollout_brings_the_env_to_where_it_was(tmp_path: Path) -> None:
    first = played(tmp_path, Echo(), ["2|"], Chat(max_turns=1))
    env = Echo()
    start = Start("g-1", 9, first.turns, Origin.RESUMED)
    rollout = played(tmp_path, env, ["4|"], start=start)
    assert env.calls == ["episode", "reset", "step 2", "step 4", "close"]
    assert rollout.turns[0] is first.turns[0] and rollout.turn_rewards == (0.0, 1.0)
    assert rollout.origin is Origin.RESUMED and rollout.outcome is Outcome.FINISHED


def test_an_rollout_resumed_inside_a_completion_shows_the_env_the_whole_completion(tmp_path: Path) -> None:
    begun = played(tmp_path, Echo(), ["2222"], max_tokens=2).turns
    env = Echo()
    rollout = played(tmp_path, env, ["5|", "4|"], start=Start("g-1", 9, begun, Origin.RESUMED))
    assert env.calls == ["episode", "reset", "step 225", "step 4", "close"]
    assert [len(turn.tokens) for turn in rollout.turns] == [4, 2]


def test_independent_rollouts_run_together_and_keep_their_order(tmp_path: Path) -> None:
    engine = Scripted(lambda prompt, key: "4" * (5 - key), seconds_per_token=0.01)
    engine.open(save_folder(tmp_path))
    policy: Policy = policy_of(tmp_path, engine)
    ended: list[str] = []

    async def one(start: Start) -> Rollout:
        rollout = await play(Chat(max_turns=1), Echo(), policy.dialogue(TASK, start))
        ended.append(rollout.id)
        return rollout

    rollouts = run(Independent()(Group(0, TASK, []), [Start(str(key), key) for key in range(4)], one))
    assert [rollout.id for rollout in rollouts] == ["0", "1", "2", "3"]
    assert ended == ["3", "2", "1", "0"], "the shortest completion was not held up by the others"


def test_a_crash_of_one_independent_rollout_is_seen() -> None:
    async def one(start: Start) -> Rollout:
        if start.key == 1:
            raise RuntimeError("engine is gone")
        await asyncio.sleep(60)
        raise AssertionError("must have been cancelled")

    with pytest.raises(ExceptionGroup) as caught:
        run(Independent()(Group(0, TASK, []), [Start("0", 0), Start("1", 1)], one))
    assert "engine is gone" in str(caught.value.exceptions[0])


@dataclass
class Answering(Echo):
    """An environment that answers whatever it is told to answer."""

    answers: Any = None

    async def step(self, completion: Message) -> Observation:
        return self.answers  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    ("answers", "error"),
    [
        (None, "answered NoneType None, need an Observation"),
        (Observation((Message("user", None),)), "need messages of text"),  # type: ignore[arg-type]
        (Observation(("more",)), "answered str more, need messages of text"),  # type: ignore[arg-type]
        *(
            (Observation(reward=paid), "need a finite number of at most 1e+12")
            for paid in (float("nan"), 1e300, 10**400, "1", [1])
        ),  # type: ignore[arg-type]
    ],
)
def test_an_answer_that_a_ledger_cannot_hold_fails_the_rollout(tmp_path: Path, answers: Any, error: str) -> None:
    rollout = played(tmp_path, Answering(answers=answers), ["3|"])
    assert rollout.outcome is Outcome.FAILED and error in rollout.error and rollout.turn_rewards == ()


def test_numbers_of_every_kind_are_taken(tmp_path: Path) -> None:
    for paid in (True, 1, np.float32(1), np.int64(1)):
        (reward,) = played(tmp_path, Answering(answers=Observation(reward=paid)), ["3|"]).turn_rewards
        assert type(reward) is float and reward == 1.0


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
