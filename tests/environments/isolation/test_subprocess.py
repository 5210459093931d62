"""Whatever an environment does, its rollout fails, the run goes on, and no process stays."""

from __future__ import annotations

import asyncio
import pickle
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from strop.control.samplers.uniform import Uniform
from strop.environments.bundled.arithmetic import Arithmetic
from strop.environments.isolation.subprocess import Apart
from strop.errors import ConfigurationError
from strop.generate.agents.chat import Chat
from strop.generate.engines.scripted import Scripted
from strop.generate.policy import Policy
from strop.generate.rollout import play
from strop.pipeline import train
from strop.training.advantages.group_relative import GroupMean
from strop.types import Group, Outcome, Sampling, Start
from tests.environments.foul import Foul, Unloadable
from tests.environments.playing import played
from tests.filter.test_scoring import worker_processes
from tests.test_pipeline import make_run, opened

ROLES = ("system", "user", "assistant", "tool")
TROUBLES = {
    "raise": "environment foul: OSError: the sandbox is gone",
    "exit": "environment foul: its process died (exit code 3)",
}


@pytest.mark.parametrize("word", TROUBLES)
def test_trouble_at_the_third_step_fails_the_rollout_and_moves_no_baseline(model: Path, word: str) -> None:
    rollouts = played(model, Apart(Foul(), 1.0), ["1", word, "2", "x"])
    assert [t.outcome for t in rollouts] == [Outcome.FINISHED, Outcome.FAILED, Outcome.FINISHED, Outcome.FINISHED]
    failed = rollouts[1]
    assert failed.error == TROUBLES[word] and len(failed.turns) == 3 and failed.turn_rewards == ()
    for rollout in rollouts:
        rollout.reward = float(sum(rollout.turn_rewards))
    GroupMean()([Group(0, failed.task, rollouts)])
    assert failed.advantages is None
    found = [float(t.advantages[0]) for t in rollouts if t.advantages is not None]
    np.testing.assert_allclose(found, [1 / 3, 1 / 3, -2 / 3], atol=1e-6)  # the mean of 1, 1, 0, not of 1, 0, 1, 0
    assert worker_processes() == []


@pytest.mark.parametrize("word", [f"forge {name}" for name in ("bytes", "number", "nothing", "nested", "extra")])
def test_whatever_comes_through_the_pipe_fails_the_rollout_and_nothing_else(model: Path, word: str) -> None:
    rollouts = played(model, Apart(Foul(), 5.0), ["1", word, "2"])
    assert [t.outcome for t in rollouts] == [Outcome.FINISHED, Outcome.FAILED, Outcome.FINISHED]
    assert re.match(r"environment foul: answered .{3,200}$", rollouts[1].error), rollouts[1].error
    assert worker_processes() == []


def test_what_is_paid_must_be_a_number_and_who_speaks_must_be_known(model: Path) -> None:
    rollouts = played(model, Apart(Foul(), 5.0), ["1", "paid nan", "nobody"])
    assert [t.outcome for t in rollouts] == [Outcome.FINISHED, Outcome.FAILED, Outcome.FAILED]
    assert rollouts[1].error.startswith("environment foul: answered") and "need a finite number" in rollouts[1].error
    assert rollouts[2].error == "environment foul: answered a message of role str nobody, need one of " + ", ".join(
        ROLES
    )


def test_the_check_of_a_foreign_env_never_runs_in_this_process() -> None:
    env = Apart(Foul())
    with pytest.raises(ConfigurationError, match=r"foul is not ours.*Checked"):
        env.check(env.task(0), "1")
    ours = Apart(Arithmetic(1))
    assert ours.check(ours.task(0), ours.task(0).answer) == 1.0


def test_a_env_that_waits_too_long_needs_no_process_to_be_ended(model: Path) -> None:
    rollouts = played(model, Foul(), ["1", "wait"], seconds=0.05)
    assert [t.outcome for t in rollouts] == [Outcome.FINISHED] * 2 and len(rollouts[1].turns) == 3
    assert rollouts[1].error.startswith("environment foul: no answer within 0.05 s, twice")


def test_what_a_env_leaves_running_ends_with_its_process(model: Path) -> None:
    (rollout,) = played(model, Apart(Foul()), ["fork"])
    assert rollout.outcome is Outcome.FINISHED
    assert worker_processes() == []


def test_a_process_serves_one_rollout_after_the_other(model: Path) -> None:
    env, engine = Apart(Foul()), Scripted({"": "1"})
    engine.open(model)

    async def twice() -> list[bool]:
        policy, found = Policy.load(model, engine, Sampling(max_tokens=16), 256), []
        for key in range(2):
            rollout = await play(Chat(), env, policy.dialogue(env.task(key), Start(f"{key}/0", key)))
            assert rollout.turn_rewards == (0.0, 0.0, 1.0)
            found.append(len(env._idle) == 1)
        first = env._idle[0]
        await play(Chat(), env, policy.dialogue(env.task(2), Start("2/0", 2)))
        assert env._idle == [first]
        await env.close()
        return found

    assert asyncio.run(twice()) == [True, True] and worker_processes() == []


def test_it_is_the_same_env_otherwise(model: Path) -> None:
    env = Apart(Foul(), 5.0)
    assert (env.name, env.level, env.task(3)) == ("foul", 1, Foul().task(3))
    assert eval(repr(env), {"Apart": Apart, "Foul": Foul}) == env == pickle.loads(pickle.dumps(env))
    inline, apart = (played(model, each, ["1", "x"]) for each in (Foul(), env))
    for one, other in zip(inline, apart, strict=True):
        assert (one.turn_rewards, one.outcome, len(one.turns)) == (other.turn_rewards, other.outcome, len(other.turns))
        assert [t.message for t in one.turns] == [t.message for t in other.turns]


def test_a_env_that_cannot_be_loaded_there_stops_the_run(model: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"environment foul cannot be loaded.*no such simulator"):
        played(model, Apart(Unloadable()), ["1"])
    assert worker_processes() == []


def test_the_run_goes_on(model: Path, tmp_path: Path) -> None:
    """One rollout in four hangs, raises or crashes its process at step 3; every step still trains whole batches."""
    words = ["1", "2", "x", "hang", *TROUBLES]
    script: Callable[[str, int], str] = lambda prompt, key: words[key % 7] if key % 7 < 6 else "3"  # noqa: E731
    envs = (Apart(Foul(), 1.0),)
    parts: dict[str, Any] = {"envs": envs, "sampler": Uniform(envs), "engine": Scripted(script)}
    run = make_run(steps=3, sampling=Sampling(max_tokens=16), max_failed_share=0.9, **parts)
    run = replace(run, groups_per_step=2)
    with opened(run, model, tmp_path / "ledger.db") as (flow, recorder):
        asyncio.run(_trained(flow, envs[0]))
        counts = flow.ledger.counts()
        assert counts["failed"] > 0 and len(recorder.rows) == 3
        assert flow.ledger.violations() == []
        errors = {error for (error,) in flow.ledger._rows("SELECT DISTINCT error FROM rollouts WHERE fate='failed'")}
        assert errors <= set(TROUBLES.values()) and len(errors) > 1
        rewards = flow.ledger._rows("SELECT DISTINCT reward FROM rollouts WHERE fate='failed'")
        assert rewards == [(None,)]
    assert worker_processes() == []


async def _trained(flow: Any, env: Apart) -> None:
    try:
        await train(flow)
    finally:
        await env.close()
