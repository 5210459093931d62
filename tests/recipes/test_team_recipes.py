"""mashost and memory-r2: graphs and memories by hand, advantage by hand, and a talk of each with a scripted model."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from strop.environments.bundled.arithmetic import Arithmetic
from strop.environments.bundled.sessions import Sessions, carried, facts_in, one_session, score
from strop.errors import ConfigurationError
from strop.filter.span_rewards import pay
from strop.generate.rollout import play
from strop.generate.rollout_limits import Limits
from strop.recipes.agent.mashost.agent_graph import AgentGraph, action_rewards
from strop.recipes.agent.mashost.recipe import ActionPrices, ActionWise, DemonstrateTeam, TeamBuilder
from strop.recipes.agent.memory_r2 import (
    DemonstrateMemory,
    ExtractAndManage,
    LocalReruns,
    SessionStandard,
    memory_before,
)
from strop.roles import Episode
from strop.types import Group, Message, Observation, Origin, Outcome, Rollout, Sampling, Start, Task, Turn
from tests.building import TASK
from tests.generate.talking import Recording, policy_of, save_folder


def turn(text: str, policy_name: str = "") -> Turn:
    """A token for each character, behind a prompt of two."""
    tokens: Any = np.arange(len(text))
    prompt: Any = np.zeros(2, np.int64)
    logprobs = np.zeros(len(text), np.float32)
    return Turn(
        prompt, tokens, logprobs, tokens * 0, Message("assistant", text), Sampling(policy_name=policy_name), fresh=True
    )


def made(
    name: str, *turns: Turn, reward: float = 0.0, paid: tuple[float, ...] = (), comparison_group: str = ""
) -> Rollout:
    return Rollout(
        name, TASK, turns, Outcome.FINISHED, reward=reward, turn_rewards=paid, comparison_group=comparison_group
    )


# ---- mashost


def test_a_graph_takes_valid_actions_and_no_others() -> None:
    graph: AgentGraph | None = AgentGraph(2)
    assert graph and graph.after("exit") is None, "nobody is there yet"
    graph = graph.after("solve")
    assert graph and graph.after("exit") is graph and graph.after("careful 2") is None and graph.after("sing") is None
    assert (
        graph.after("quick 0001") is None
        and graph.after("quick 1 1") is None
        and graph.after("delete 2") is None
        and graph.after("") is None
    )
    graph = graph.after("careful 1")
    assert graph and graph.agents == {1: ("solve", ()), 2: ("careful", (1,))} and graph.after("quick") is None, "full"
    graph = graph.after("delete 1")
    assert graph and graph.agents == {2: ("careful", ())}, "edges go with it"
    graph = graph.after("quick 2")
    assert graph and graph.agents == {2: ("careful", ()), 3: ("quick", (2,))}, "numbers are not used again"


def test_actions_are_worth_something_by_themselves() -> None:
    assert action_rewards(["solve", "sing", "careful 1", "delete 1", "exit"], 3, 0.2) == [-0.2, -1.0, -0.2, 0.0, 0.0]
    assert action_rewards(["exit"], 3, 0.2) == [-1.0]


def test_teams_are_compared_and_actions_are_not() -> None:
    """Two teams of equal success differ in advantage by 0.1 times the difference of their actions' worth."""
    rollouts = [
        made("0", turn("solve", "host"), turn("exit", "host"), turn("7", "solve"), reward=1.0),
        made("1", turn("solve", "host"), turn("no", "host"), turn("exit", "host"), turn("7", "solve"), reward=1.0),
        made("2", turn("solve", "host"), turn("exit", "host"), turn("8", "solve"), reward=0.0),
    ]
    group = Group(0, TASK, rollouts)
    for rollout, paid in zip(rollouts, ActionPrices(3, 0.2, 0.1)(group), strict=True):
        rollout.reward += 0.1 * pay(rollout, "action_prices", 0.1, paid, lambda tokens: np.arange(1, len(tokens) + 1))
    assert [a.reward for a in rollouts] == pytest.approx([0.98, 0.88, -0.02])
    ActionWise()([group])
    high, low = 0.5**0.5, -(2**0.5)  # of 1, 1, 0
    expected = [
        [high - 0.02] * 5 + [high] * 5,
        [high - 0.02] * 5 + [high - 0.1] * 2 + [high] * 5,
        [low - 0.02] * 5 + [low] * 5,
    ]
    for rollout, advantage in zip(rollouts, expected, strict=True):
        assert rollout.advantages is not None and rollout.advantages.tolist() == pytest.approx(advantage, abs=1e-4)
    assert ActionWise().learn([group]) == pytest.approx({"action_pay": -0.16 / 3, "team_policies": 2.0})


def test_teams_that_are_equally_good_differ_by_their_actions_alone() -> None:
    """Prices are noted in single precision: what is left of them would be as large as advantage as an agent costs."""
    prices, rollouts = ActionPrices(3, 0.3, 0.1), [made(str(n), *[turn("no", "host")] * n, turn("7")) for n in range(5)]
    for rollout, paid in zip(rollouts, prices(group := Group(0, TASK, rollouts)), strict=True):
        rollout.reward = 1 + 0.1 * pay(rollout, "p", 0.1, paid, lambda tokens: np.arange(1, len(tokens) + 1))
    ActionWise()([group])
    found = [[] if a.advantages is None else a.advantages.tolist() for a in rollouts]
    assert found == [pytest.approx([-0.1] * 2 * n + [0.0], abs=1e-7) for n in range(5)]
    rollouts = [made(str(n), turn("7"), reward=2e-6 * n) for n in range(2)]
    ActionWise()([Group(0, TASK, rollouts)])
    assert [float(a.advantages[0]) for a in rollouts if a.advantages is not None] == pytest.approx(
        [-0.5, 0.5], abs=1e-3
    )


def test_the_team_that_was_built_answers(tmp_path: Path) -> None:
    env = Arithmetic(1)
    task = env.task(0)
    engine = Recording(["solve|", "oops|", "careful 1|", "exit|", "<think>so</think>9|", f"{task.answer}|"])
    policy = policy_of(save_folder(tmp_path), engine)
    rollout = asyncio.run(play(TeamBuilder(2), env, policy.dialogue(task, Start("0/0", 1))))
    assert [t.sampling.policy_name for t in rollout.turns] == ["host"] * 4 + ["solve", "careful"]
    assert rollout.completion == task.answer and rollout.turn_rewards == (0.0,) * 5 + (1.0,)
    read = [policy.template.text(t.prompt) for t in rollout.turns]
    question = task.messages[-1].content
    assert f"host: {question}" in read[0] and "1" in read[1] and "error" in read[2] and "2" in read[3]
    assert f"careful: {question} hint: so 9" in read[5] and "host" not in read[5]
    nobody = policy_of(save_folder(tmp_path), Recording(["exit|"] * 4))
    rollout = asyncio.run(play(TeamBuilder(2), env, nobody.dialogue(task, Start("0/0", 1))))
    assert len(rollout.turns) == 4 and rollout.turn_rewards == (0.0,) * 4, "taken at its word after 4 actions"
    with pytest.raises(ConfigurationError, match="most >= 1"):
        TeamBuilder(0)
    assert ActionPrices.is_inline
    with pytest.raises(ConfigurationError, match="price >= 0"):
        ActionPrices(price=-1.0)


class Hears(Episode):
    """Keeps what was answered."""

    def __init__(self) -> None:
        self.heard: list[Message] = []

    async def reset(self, task: Task) -> None:
        pass

    async def step(self, completion: Message) -> Observation:
        self.heard.append(completion)
        return Observation(reward=0.5)


def test_where_nobody_may_speak_any_more_the_answer_is_empty(tmp_path: Path) -> None:
    env, heard = Arithmetic(1), []
    for turns, completions in ((2, ["solve|", "exit|"]), (3, ["solve|", "quick 1|", "exit|"]), (1, ["exit|"])):
        policy = policy_of(save_folder(tmp_path), Recording(completions))
        talk, hears = policy.dialogue(env.task(0), Start("0/0", 1), Limits(turns=turns)), Hears()
        paid = asyncio.run(TeamBuilder(2).rollout(env.task(0), talk, hears))
        assert paid == (*[0.0] * (turns - 1), 0.5) and len(talk.turns) == turns
        heard += hears.heard
    assert heard == [Message("assistant", "")] * 3


def test_teams_that_are_shown_are_valid_and_of_every_size(tmp_path: Path) -> None:
    env, policy, sizes = Arithmetic(1), policy_of(save_folder(tmp_path), Recording([])), set()
    later: list[int] = []
    for key in range(100):
        task = env.task(key)
        rollout = asyncio.run(play(DemonstrateTeam(3), env, policy.dialogue(task, Start("0/0", key))))
        texts = [t.message.content for t in rollout.turns if t.sampling.policy_name == "host"]
        assert rollout.origin is Origin.TEACHER and min(action_rewards(texts, 3, 0.2)) >= -0.2 and texts[-1] == "exit"
        assert env.check(task, rollout.completion) == 1.0
        sizes.add(len(texts) - 1)
        later += [len(text.split()) - 1 for text in texts[1:-1]]
    assert sizes == {1, 2, 3} and set(later) == {0, 1} and 0.4 < np.mean(later) < 0.6, "half of them read one"


# ---- memory-r2


def test_a_memory_is_asked_for_every_fact_and_pays_for_its_length() -> None:
    told = {"red": "3", "blue": "7"}
    assert score("red 3 blue 7", told, 8) == 1.0, "4 of 8 words"
    assert score("red 3 blue 8", told, 8) == 0.5 and score("none", told, 8) == 0.0
    assert score("red 3 blue 7", told, 4) == pytest.approx(1 - 0.3 * (4 - 2.8) / 4)
    assert facts_in("red 3 and blue 12 red 4 sky 1") == {"red": "4"}
    assert carried(f"<think>so</think>red  3 {'x' * 500}") == f"red 3 {'x' * 393}", "400 characters, blanks among them"
    assert carried("<think>so</think> ") == "none"


def conversation() -> Task:
    env = Sessions(3)
    return env.task(0)


def test_a_session_alone_begins_with_a_given_memory() -> None:
    import json

    task = conversation()
    secret = json.loads(task.answer)
    alone = json.loads((part := one_session(task, 2, "red 1")).answer)
    assert alone["sessions"] == secret["sessions"][2:] and alone["memory"] == "red 1"
    assert alone["told"] == facts_in(" ".join(secret["sessions"][:2])) and alone["words"] == 8
    assert part.messages[-1].content == f"memory: red 1 session: {secret['sessions'][2]}"
    assert part.source == task.source and part.level == task.level


def test_roles_keep_the_memory_and_what_is_shown_is_right(tmp_path: Path) -> None:
    env, task = Sessions(3), conversation()
    policy = policy_of(save_folder(tmp_path), Recording(["new one|", "red 1|"] * 3))
    rollout = asyncio.run(play(ExtractAndManage(), env, policy.dialogue(task, Start("0/0", 1))))
    assert [t.sampling.policy_name for t in rollout.turns] == ["extractor", "manager"] * 3 and all(
        t.fresh for t in rollout.turns
    )
    read = [policy.template.text(t.prompt) for t in rollout.turns]
    assert "memory: none new: new one" in read[1] and "memory: red 1 new: new one" in read[3]
    assert memory_before(rollout, 0) == "none" and memory_before(rollout, 1) == "red 1"
    shown = asyncio.run(play(DemonstrateMemory(), env, policy.dialogue(task, Start("0/0", 1))))
    assert env.check(task, shown.completion) == 1.0 and shown.origin is Origin.TEACHER
    assert 1 >= sum(shown.turn_rewards) > 0.8 > sum(rollout.turn_rewards), "a mean over sessions"
    assert shown.turn_rewards[::2] == rollout.turn_rewards[::2] == (0.0,) * 3, "the manager is paid"


def scored(*scores: float, name: str = "0", comparison_group: str = "") -> Rollout:
    paid = tuple(value for each in scores for value in (0.0, each))
    turns = tuple(
        turn(text, policy_name) for _ in scores for text, policy_name in (("ab", "extractor"), ("c", "manager"))
    )
    return made(name, *turns, paid=paid, comparison_group=comparison_group)


def credits_of(part: SessionStandard, *rollouts: Rollout) -> list[list[float]]:
    part([Group(0, TASK, list(rollouts))])
    return [[] if a.advantages is None else [round(float(v), 3) for v in a.advantages] for a in rollouts]


def test_sessions_are_compared_with_the_same_session_of_siblings() -> None:
    ends = [0.2, 0.4, 0.4, 0.6]
    found = credits_of(SessionStandard("global"), *(scored(0.9 - end, end) for end in ends))
    assert found == [[value] * 6 for value in (-1.225, 0.0, 0.0, 1.225)], "the last session's score"
    assert credits_of(SessionStandard(), scored(0.3), scored(0.5)) == [[-0.707] * 3, [0.707] * 3]
    assert credits_of(SessionStandard(), scored(0.3)) == [[0.0] * 3], "alone"
    found = credits_of(SessionStandard("session"), scored(0.1, 0.5), scored(0.3, 0.1))
    assert found == [[-0.707] * 3 + [0.707] * 3, [0.707] * 3 + [-0.707] * 3]
    found = credits_of(SessionStandard("cumulative"), scored(0.1, 0.5), scored(0.3, 0.1))
    assert found == [[0.707] * 6, [-0.707] * 6], "0.3 against 0.2, then 0.5 against 0.1"
    found = credits_of(SessionStandard("global"), scored(0.9), scored(0.3, 0.1), scored(0.3, 0.4))
    assert found[0] == [-0.801] * 3, "broke off: 0 against 0.1 and 0.4"
    assert credits_of(SessionStandard("global"), scored(), scored()) == [[], []], "nobody could say anything"
    assert credits_of(SessionStandard(), scored(0.0), scored(2e-6)) == [[-0.414] * 3, [0.414] * 3], "1 / (2^0.5 + 1)"
    local = scored(0.5, comparison_group="session 0")
    local.facts["local"] = 1.0
    group = Group(0, TASK, [local, scored(0.5), scored(0.5), scored(0.5)])
    assert SessionStandard().learn([group]) == {"local_share": 0.25} and SessionStandard().learn([])["local_share"] == 0


class Plays:
    """A player that keeps what it was asked to play."""

    def __init__(self) -> None:
        self.asked: list[tuple[Start, Task | None]] = []

    def another(self, **changes: Any) -> Start:
        return replace(Start(f"0/{len(self.asked)}", 5), **changes)

    async def __call__(self, start: Start, agent: Any = None, task: Task | None = None) -> Rollout:
        self.asked.append((start, task))
        return scored(0.5, name=start.id, comparison_group=start.comparison_group)


class Whole:
    def __init__(self, *rollouts: Rollout) -> None:
        self.rollouts = list(rollouts)

    async def __call__(self, group: Group, starts: Any, play: Any) -> list[Rollout]:
        return self.rollouts


def test_local_rollouts_start_from_one_rollouts_memory() -> None:
    task, play = conversation(), Plays()
    whole = made("0", *(turn(text) for text in ("a", "red 1", "b", "red 2", "c", "red 3")))
    whole.task, failed = task, scored(0.1, name="1")
    failed.outcome = Outcome.FAILED
    strategy: Any = LocalReruns(Whole(whole, failed), share=1.0, count=2)  # type: ignore[arg-type]
    brought = asyncio.run(strategy(Group(0, task, []), [Start("0/0", 3)], play))
    assert [start.comparison_group for start, _ in play.asked] == ["session 0"] * 2 + ["session 1"] * 2 + [
        "session 2"
    ] * 2
    memories = [each.messages[-1].content.split(" session: ")[0] for _, each in play.asked if each]
    assert memories == ["memory: none"] * 2 + ["memory: red 1"] * 2 + ["memory: red 2"] * 2
    assert all(start.origin is Origin.BRANCHED for start, _ in play.asked)
    assert brought[:2] == [whole, failed] and [a.facts.get("local") for a in brought[2:]] == [1.0] * 6
    none: Any = LocalReruns(Whole(whole), share=0.0)  # type: ignore[arg-type]
    assert asyncio.run(none(Group(0, task, []), [Start("0/0", 3)], play)) == [whole]
    with pytest.raises(ConfigurationError, match="count >= 2"):
        LocalReruns(Whole(), count=1)  # type: ignore[arg-type]
