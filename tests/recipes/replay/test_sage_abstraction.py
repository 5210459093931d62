"""Self-abstraction by hand: two runs in environments of their own, a plan in between, and nothing scored before the
end.
"""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from strop.environments.bundled.keyvalue import KeyValue
from strop.errors import ConfigurationError
from strop.generate.group_rollouts import GroupPlayer
from strop.recipes.replay.sage_abstraction import PlanAndRetry
from strop.types import Group, Message, Origin, Outcome, Rollout, Task
from tests.generate.asking import Speaking, asked_of, player_of
from tests.generate.critic import Critic

ENV = KeyValue(1)
TASK = Task((Message("user", "sum red to gold"),), json.dumps({"store": {"red": 7}, "total": 7}), "keyvalue", 1)
# the first run stores what it found; the second looks whether that is still there
COMPLETIONS = ["<call>set gold 7</call>", "7", "<call>get gold</call>", "nothing"]


def run_twice(folder: Path, critic: Critic, **fields: int) -> tuple[Rollout, GroupPlayer, Speaking]:
    async def score(group: Group) -> None:
        raise AssertionError("nothing is scored before it is handed in")

    play, engine = player_of(folder, ENV, TASK, lambda prompt, call: COMPLETIONS[call])
    play.scorer = score
    (rollout,) = asyncio.run(PlanAndRetry(critic, **fields)(play.group, [play.another()], play))
    return rollout, play, engine


def test_the_second_run_reads_a_plan_and_finds_the_env_as_the_first_did(tmp_path: Path) -> None:
    critic = Critic({"plan": "1. get the key\n2. then store 7\n\n- check gold"})
    second, play, engine = run_twice(tmp_path, critic)
    assert "user\nsum red to gold<|end|>" in engine.prompts[0]
    assert "user\nget the key check gold sum red to gold" in engine.prompts[2], "no step says what was answered"
    assert engine.prompts[3].endswith("tool\nerror: no such key<|end|>\n<|start|>assistant\n"), "a fresh store"
    assert critic.read("plan")[0]["completion"] == "turn 1: <call>set gold 7</call>\nenvironment: ok\nturn 2: 7"
    assert second.id == "0/0" and second.origin is Origin.GUIDED and second.completion == "nothing"
    (first,) = [rollout for rollout in play.unused([second]) if rollout.turns]
    assert first.outcome is Outcome.PRUNED and [turn.message.content for turn in first.turns] == COMPLETIONS[:2]
    told = len("turn 1: <call>set gold 7</call>\nenvironment: ok\nturn 2: 7")
    assert second.facts == {"plan_steps": 2.0, "plan_share": pytest.approx(21 / told)}


def test_a_plan_is_shorter_than_what_it_was_taken_from(tmp_path: Path) -> None:
    told = len("turn 1: <call>set gold 7</call>\nenvironment: ok\nturn 2: 7")
    as_long, _, engine = run_twice(tmp_path, Critic({"plan": "x" * told}))
    assert as_long.facts["plan_steps"] == 0.0 and len(engine.prompts) == 2 and as_long.completion == "7"
    shorter, *_ = run_twice(tmp_path, Critic({"plan": "x" * (told - 1)}))
    assert shorter.facts["plan_steps"] == 1.0
    bounded, *_ = run_twice(tmp_path, Critic({"plan": "aaaa\nbbbb\ncccc"}), longest=9)
    assert bounded.facts["plan_steps"] == 2.0
    few, *_ = run_twice(tmp_path, Critic({"plan": "aaaa\nbbbb\ncccc"}), steps=1)
    assert few.facts["plan_steps"] == 1.0


def test_without_a_plan_the_first_run_is_handed_in(tmp_path: Path) -> None:
    first, _, engine = run_twice(tmp_path, Critic({}))
    assert first.completion == "7" and len(engine.prompts) == 2 and first.origin is Origin.POLICY
    for bad in ({"steps": 0}, {"longest": 0}):
        with pytest.raises(ConfigurationError, match="PlanAndRetry needs"):
            PlanAndRetry(None, **bad)


def test_what_runs_side_by_side_ask_does_not_depend_on_who_is_done_first(tmp_path: Path) -> None:
    first = asked_of(tmp_path, ENV, TASK, PlanAndRetry(None), lambda key: 0)
    for late in (lambda key: key % 7, lambda key: 50 - key % 50):
        assert asked_of(tmp_path, ENV, TASK, PlanAndRetry(None), late) == first
