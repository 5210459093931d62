"""openclaw-rl, dreamgym, playpen, imagined-conversations and vsc-rl: numbers by hand, talks with a scripted model."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from strop.environments.bundled.guess import Guess
from strop.environments.bundled.keyvalue import KeyValue
from strop.errors import ConfigurationError, LLMClientError
from strop.filter.paid_text import Paid
from strop.filter.span_rewards import pay
from strop.generate.agents.chat import Chat
from strop.generate.agents.demonstrator import Demonstrate
from strop.generate.llm_clients.without_model import Canned, Procedural
from strop.generate.rollout import play
from strop.recipes.agent.dreamgym.environment import Dreamed, Experiences
from strop.recipes.agent.dreamgym.recipe import FromVaried, dreamgym, variance
from strop.recipes.agent.imagined_conversations import ExponentialWeights, Imagined
from strop.recipes.agent.openclaw_rl import (
    HindsightHints,
    JudgedAndHinted,
    NextStateVotes,
    chosen_hint,
    gap,
    majority,
    next_states,
    openclaw_rl,
    with_hint,
)
from strop.recipes.agent.playpen.environment import Describe, Refereed
from strop.recipes.agent.playpen.recipe import Played, playpen
from strop.recipes.agent.vsc_rl.environment import Subgoals, plain, subgoals
from strop.recipes.agent.vsc_rl.recipe import WithBestCloned
from strop.roles import LLMClient
from strop.standins.judges.outcomes import judged_next_state
from strop.standins.world_model import dreamt
from strop.text.llm_prompt import parts_of, question
from strop.training.advantages.constant import Constant
from strop.training.learners import learners_of
from strop.training.losses.likelihood import Likelihood
from strop.training.losses.preference_pairs import Dpo
from strop.training.values.turn_critic import TurnCritic, expectile_weights
from strop.types import Group, Message, Observation, Origin, Outcome, Rollout, Sampling, Start, Task, Turn
from tests.building import TASK, make_group
from tests.generate.talking import Recording, policy_of, save_folder


def turn(text: str, told: Sequence[str] = (), fresh: bool = False) -> Turn:
    """A token for each character, behind a prompt of two."""
    tokens: Any = np.arange(len(text))
    prompt: Any = np.zeros(2, np.int64)
    said = tuple(Message("user", each) for each in told)
    logprobs = np.zeros(len(text), np.float32)
    return Turn(prompt, tokens, logprobs, tokens * 0, Message("assistant", text), fresh=fresh, told=said)


def made(*turns: Turn, name: str = "0", reward: float = 0.0) -> Rollout:
    return Rollout(name, TASK, turns, Outcome.FINISHED, reward=reward)


# ---- openclaw-rl


def test_votes_and_hints_as_the_card_has_them() -> None:
    assert majority([1, -1]) == 0 and majority([1, 1, -1]) == 1 and majority([-1, None, -1]) == -1
    assert majority([]) == 0 and majority([0, 0, 1]) == 0
    answers = [(1, "ten chars!"), (1, "look at the tens"), (-1, "x" * 99), None, (1, "look at tens")]
    assert chosen_hint(answers) == "look at the tens" and chosen_hint(answers[:1]) == ""


def test_what_follows_a_completion_within_its_context_is_its_next_state() -> None:
    rollout = made(turn("a"), turn("b", ["no", "error"]), turn("c", ["other"], fresh=True))
    assert next_states(rollout) == ["no\nerror", "", ""]


def test_rules_judge_by_the_next_message_and_can_add() -> None:
    def ask(wanted: str, task: str, state: str) -> str:
        return judged_next_state(question("?", wanted=wanted, task=task, completion="7", other=state))

    assert [ask("verdict", "1+1=?", each) for each in ("thanks", "7", "that is wrong", "error: no", "lower")] == [
        "score: 1",
        "score: 1",
        "score: -1",
        "score: -1",
        "score: 0",
    ]
    assert ask("hint", "47+38=?", "that is wrong").startswith("score: 1\nhint: ")
    assert ask("hint", "47+38=?", "thanks") == "score: -1\n"
    assert "get KEY" in ask("hint", "sum red blue", "error: no such key")


def paid_for(reward: NextStateVotes, rollout: Rollout) -> Paid:
    async def awaited() -> Sequence[Paid]:
        return await reward(Group(0, TASK, [rollout]))

    return asyncio.run(awaited())[0]  # type: ignore[return-value]


class Questioned(LLMClient):
    """Keeps what it was asked, and says nothing of use."""

    def __init__(self, answer: str) -> None:
        self.answer, self.asked, self.samplings = answer, list[dict[str, str]](), list[Sampling]()

    async def ask(self, messages: Sequence[Message], sampling: Any, key: int) -> str:
        self.asked.append(parts_of(messages[0].content))
        self.samplings.append(sampling)
        return self.answer


def test_a_judge_is_told_the_task_the_completion_and_what_came_after() -> None:
    judge = Questioned("score: 1")
    paid = paid_for(NextStateVotes(judge, 1), made(turn("ab"), turn("c", ["no"])))
    assert paid.end == 0.0 and [span.value for span in paid.spans] == [1]
    assert judge.samplings == [Sampling(temperature=0.6, max_tokens=536)]
    told = {"wanted": "verdict", "task": TASK.messages[-1].content, "completion": "ab", "other": "no"}
    assert judge.asked[0].items() >= told.items()


def test_credit_is_the_judge_score_plus_the_gap() -> None:
    """teacher -1, old -2, r +1: 2."""
    rollout = made(turn("ab"), turn("c", ["thanks"]), turn("d", ["that is wrong"]))
    reward = NextStateVotes(Procedural(judged_next_state), votes=3)
    paid = paid_for(reward, rollout)
    assert [(span.turn, span.value) for span in paid.spans] == [(0, 1.0), (1, -1.0)]
    rollout.reward = pay(rollout, "next_state", 1.0, paid, lambda tokens: np.arange(1, len(tokens) + 1))
    aux = {"hint_gap": np.array([0, 0, *gap(np.array([-1.0], np.float32), np.array([-2.0], np.float32))])}
    rollout.turns = (
        *rollout.turns[:1],
        replace(rollout.turns[1], aux={**rollout.turns[1].aux, **aux}),
        rollout.turns[2],
    )
    group = Group(0, TASK, [rollout])
    JudgedAndHinted()([group])
    assert rollout.advantages is not None and rollout.advantages.tolist() == [1.0, 1.0, 0.0, 0.0]
    JudgedAndHinted(2.0, 0.5)([group])
    assert rollout.advantages.tolist() == [2.0, 2.0, -1.5, 0.0]
    rollout.facts["hints"] = 1.0
    assert JudgedAndHinted().learn([group, Group(1, TASK, [made(turn("ab"))])]) == {"hint_gap": 0.5, "hints": 0.5}
    assert openclaw_rl(judged=2.0, hinted=0.5).advantage == JudgedAndHinted(2.0, 0.5)
    with pytest.raises(ConfigurationError, match="logprob for each of the 2 tokens"):
        gap(np.zeros(1, np.float32), np.zeros(2, np.float32))
    with pytest.raises(ConfigurationError, match="votes >= 1"):
        NextStateVotes(Canned(), votes=0)


class Looking:
    """Plays nothing; says -3 of tokens as they were and -1 of those behind a hint, and keeps whom it looked at."""

    def __init__(self) -> None:
        self.looked: list[Rollout] = []

    async def look(self, rollouts: Sequence[Rollout], needs: Any) -> list[dict[str, Any]]:
        self.looked += rollouts
        return [{"logprobs": np.full(a.num_tokens, -1.0 if "~" in a.id else -3.0, np.float32)} for a in rollouts]


class Given:
    def __init__(self, rollout: Rollout) -> None:
        self.rollout = rollout

    async def __call__(self, group: Group, starts: Any, play: Any) -> list[Rollout]:
        return [self.rollout]


def test_the_hint_stands_behind_the_last_message_token_for_token(tmp_path: Path) -> None:
    policy = policy_of(save_folder(tmp_path), Recording(["1|", "7|", "8|"]))
    talk = policy.dialogue(TASK, Start("0/0", 1))

    async def talked() -> None:
        await talk.completion()
        talk.hear([Message("user", "and")])
        await talk.completion()
        talk.hear([Message("user", "that is wrong")])
        await talk.completion()

    asyncio.run(talked())
    rollout = Rollout("0/0", TASK, talk.turns, Outcome.FINISHED)
    canned = Canned({"]\nand": "score: -1", "that is wrong": "score: 1\nlook at the tens"})
    strategy: Any = HindsightHints(Given(rollout), canned)  # type: ignore[arg-type]
    player = Looking()
    with pytest.raises(ConfigurationError, match="has no policy"):
        asyncio.run(strategy(Group(0, TASK, []), [], player))
    strategy.meet(policy)
    (found,) = asyncio.run(strategy(Group(0, TASK, []), [], player))
    assert [turn.aux["hint_gap"][len(turn.prompt) :].tolist() for turn in found.turns] == [
        [0.0] * 2,
        [2.0] * 2,
        [0.0] * 2,
    ]
    behind = player.looked[1].turns[0]
    assert behind.fresh and behind.aux == {}
    before = np.concatenate([rollout.turns[0].prompt, rollout.turns[0].tokens])
    assert np.array_equal(behind.prompt[: len(before)], before) and np.array_equal(
        behind.tokens, rollout.turns[1].tokens
    )
    plain = policy.template.text(rollout.turns[1].prompt)
    assert policy.template.text(behind.prompt[len(before) :]) == plain.replace("and", "and look at the tens")
    assert found.facts["hints"] == 1.0
    assert with_hint(policy.template, rollout.turns[0].tokens, "look") is None, "no message ends there"
    for context, hints in ((len(behind.prompt) + 2, 1.0), (len(behind.prompt) + 1, 0.0)):
        strategy.meet(replace(policy, context=context))
        (found,) = asyncio.run(strategy(Group(0, TASK, []), [], player))
        assert found.facts["hints"] == hints, "it must fit in the context with the completion"


# ---- dreamgym


def asked(task: str, completion: str, history: str = "", similar: str = "") -> str:
    return dreamt(question("?", task=task, ideas=history, other=similar, completion=completion))


def test_a_dream_is_consistent_and_pays_for_what_it_said() -> None:
    history = "<call>get red</call> -> 5\n<call>get blue</call> -> 2"
    assert asked("sum red", "<call>get red</call>", history, "<call>get red</call> -> 9") == "state: 5"
    assert asked("sum red", "<call>get red</call>", "", "<call>get red</call> -> 9") == "state: 9", (
        "as it was elsewhere"
    )
    assert asked("sum red", "<call>get red</call>") == f"state: {sum(map(ord, 'red')) % 10}"
    assert asked("sum red", "<call>get sky</call>") == "state: error: no such key"
    assert asked("sum red", "<call>set gold 7</call>") == "state: ok"
    assert asked("sum red", "<call>jump</call>").startswith("state: error")
    assert (
        asked("sum red blue", "<think>x</think>7", history) == "reward: 1"
        and asked("sum red blue", "8", history) == "reward: 0"
    )
    assert asked("sum red gold", "5", history) == "reward: 0", "gold was never looked up"
    assert asked("sum red blue to gold", "7", history) == "reward: 0", "nor stored"
    assert asked("sum red blue to gold", "7", history + "\n<call>set gold 7</call> -> ok") == "reward: 1"


def test_demonstrations_solve_the_dream_and_similar_ones_are_found() -> None:
    env, memory = KeyValue(2), Experiences(top=2)
    dream = Dreamed(env, Procedural(dreamt), memory, seeds=2)
    task = Task((Message("user", "sum red blue"),), env.task(0).answer, "keyvalue", 2)

    async def dreamed(completions: Sequence[str]) -> list[Any]:
        episode = dream.episode()
        await episode.reset(task)
        return [await episode.step(Message("assistant", each)) for each in completions]

    red, blue, wrong = asyncio.run(dreamed(["<call>get red</call>", "<call>get blue</call>", "99"]))
    assert red.messages[0].content.isdigit() and not red.done and wrong.done and wrong.reward == 0.0
    total = int(red.messages[0].content) + int(blue.messages[0].content)
    *_, right = asyncio.run(dreamed(["<call>get red</call>", "<call>get blue</call>", str(total)]))
    assert right.reward == 1.0
    assert (counted := memory.learn([]))["experiences_real"] >= 4, "two look-ups of two tasks"
    assert counted["experiences_new"] == 0.0
    with pytest.raises(LLMClientError, match="neither a state nor a reward"):
        bad = Dreamed(env, Canned({"sum": "hm"}), Experiences())
        asyncio.run(_first(bad, task))
    with pytest.raises(ConfigurationError, match="turns >= 1"):
        replace(dream, turns=0)
    assert dream.pays and dream.is_inline
    asked = Questioned("reward: 1")
    memory.add(task, "<call>get red</call>", "9")
    assert asyncio.run(_first(replace(dream, model=asked), task)).reward == 1.0
    assert asked.asked[0]["task"] == "sum red blue" and asked.asked[0]["completion"] == "7"
    assert "<call>get red</call> -> 9" in asked.asked[0]["other"], "similar experience"
    assert asked.samplings == [Sampling(temperature=0.0, max_tokens=1024)]
    short = replace(dream, turns=1)
    assert asyncio.run(_first(short, task, "<call>get red</call>")).done and not red.done, "its turns are used up"


async def _first(env: Dreamed, task: Task, completion: str = "7") -> Observation:
    episode = env.episode()
    await episode.reset(task)
    return await episode.step(Message("assistant", completion))


def test_the_memory_finds_what_is_most_alike_and_goes_on() -> None:
    memory, task = Experiences(top=2), Task((Message("user", "sum red blue"),), "", "keyvalue")
    other = Task((Message("user", "sum gold pink"),), "", "keyvalue")
    for number, (each, action) in enumerate([(other, "get red"), (task, "get red"), (task, "get blue")]):
        memory.add(each, f"<call>{action}</call>", str(number))
    assert [followed for _, followed in memory.similar(task, "<call>get red</call>")] == ["1", "0"]
    long = Experiences(top=1)
    for action, followed in (("get red", "3"), ("get red of all", "4")):
        long.add(task, action, followed)
    assert long.similar(task, "get red") == [("get red", "3")], "2 of 2 words, not 2 of 4"
    rollout = made(turn("<call>get lime</call>"), turn("5", ["4"]))
    assert memory.learn([Group(0, TASK, [rollout])]) == {"experiences_real": 0.0, "experiences_new": 4.0}
    again = Experiences(top=2)
    again.restore(memory.state())
    assert (
        again.similar(task, "get lime")
        == memory.similar(task, "get lime")
        == [("<call>get lime</call>", "4"), ("<call>get blue</call>", "2")]
    )


def test_real_experience_is_kept_longest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("strop.recipes.agent.dreamgym.environment._MOST", 3)
    memory = Experiences(top=9)
    for number, is_real in enumerate([False, True, False, False, True]):
        memory.add(TASK, "get", str(number), is_real)
    assert memory.state() == {"kept": [[TASK.messages[-1].content, "get", each] for each in "143"], "real": 2}
    for number in range(5, 9):
        memory.add(TASK, "get", str(number), is_real=True)
    assert [each[2] for each in memory.state()["kept"]] == ["1", "4", "5"] and memory.state()["real"] == 3


def test_only_tasks_that_vary_are_seeds() -> None:
    assert variance(make_group([1.0, 0.0])) == 0.25 and variance(make_group([1.0, 0.0, 0.0, 0.0])) == pytest.approx(
        0.1875
    )
    assert variance(make_group([1.0, 0.0, 1.0], failed=[1])) == 0.0 == variance(make_group([]))
    task_generator = FromVaried(Canned({"": "[task]\nsum red blue\n[answer]\n3"}))
    player: Any = None
    assert (
        asyncio.run(task_generator(make_group([1.0, 1.0]), player))
        == []
        == asyncio.run(task_generator(make_group([0.0] * 4), player))
    )
    with pytest.raises(ConfigurationError, match="least"):
        FromVaried(least=0.0)


# ---- playpen


def talked(env: Any, task: Task, folder: Path, *completions: str) -> Rollout:
    policy = policy_of(save_folder(folder), Recording([f"{each}|" for each in completions]))
    return asyncio.run(play(Chat(), env, policy.dialogue(task, Start("0/0", 1))))


def test_a_number_is_described_to_a_partner_within_the_rules(tmp_path: Path) -> None:
    env = Describe(2)
    task = Task((Message("user", "describe 17"),), "17", "describe", 2)
    assert [env.check(task, each) for each in ("8+9", "17+0", "8+8", "17", "x")] == [1.0, 0.0, 0.0, 0.0, 0.0]
    assert talked(env, task, tmp_path, "8+9").turn_rewards == (1.0,)
    second = talked(env, task, tmp_path, "8+8", "<think>x</think>8+9")
    assert second.turn_rewards == (0.0, 0.5) and second.turns[1].told[0].content == "partner says 16"
    assert talked(env, task, tmp_path, "8+8", "8+8", "8+8").turn_rewards == (0.0,) * 3
    assert talked(env, task, tmp_path, "17+0").turn_rewards == (0.0,), "it was said"
    surely = Questioned("17")
    assert talked(replace(env, partner=surely), task, tmp_path, "8+9").turn_rewards == (1.0,)
    assert surely.samplings == [Sampling(temperature=0.0, max_tokens=64)]
    partner = replace(env, partner=Canned({"8+9=?": "<think>y</think>17", "1+1=?": "no number"}))
    assert talked(partner, task, tmp_path, "1+1", "8+9").turn_rewards == (0.0, 0.5)
    policy = policy_of(save_folder(tmp_path), Recording([]))
    for each in map(env.task, range(20)):
        shown = asyncio.run(play(Demonstrate(), env, policy.dialogue(each, Start("0/0", 1))))
        assert shown.turn_rewards == (1.0,)
    assert all(10 <= int(env.task(index).answer) < 100 for index in range(200))
    for number, said in (("17", "10+7"), ("50", "10+40"), ("10", "9+1"), ("3", "1+2"), ("100", "99+1")):
        each = Task((Message("user", f"describe {number}"),), number, "describe", len(number))
        shown = asyncio.run(play(Demonstrate(), Describe(1), policy.dialogue(each, Start("0/0", 1))))
        assert shown.completion == said
    assert {int(Describe(1).task(index).answer) for index in range(60)} <= set(range(3, 10))


def test_an_aborted_game_counts_as_not_played_and_not_as_badly_played(tmp_path: Path) -> None:
    env = Refereed(Guess(1))
    task = env.task(0)
    won = talked(env, task, tmp_path, task.answer)
    aborted = talked(env, task, tmp_path, "what?")
    assert won.turn_rewards == (1.0,) and aborted.turn_rewards == (0.0,) and len(aborted.turns) == 1
    later = talked(env, task, tmp_path, "1", "what?")
    assert Played((env,))(Group(0, task, [later])) == [0.0], "a game is aborted in any turn"
    lost = replace(won, id="2", turns=(replace(won.turns[0], message=Message("assistant", "1")),))
    rollouts, part = [won, aborted, lost], Played((env,))
    marks = part(Group(0, task, rollouts))
    assert marks == [1.0, 0.0, 1.0] and part.weight == 0
    for rollout, mark, reward in zip(rollouts, marks, (1.0, 0.0, 0.5), strict=True):
        rollout.rewards, rollout.reward = {"played": mark}, reward
    found = part.learn([Group(0, task, rollouts)])
    assert found == pytest.approx({"games_played": 2 / 3, "games_quality": 75.0, "games_score": 50.0})


def test_games_are_imitated_that_were_won_in_any_round() -> None:
    won = make_group([1.0, 0.5, 1 / 3, 0.0])
    (gate,) = playpen(learns="sft").gates
    assert (kept := gate(won).group) and [rollout.reward for rollout in kept.rollouts] == [1.0, 0.5, 1 / 3]
    pairs = playpen(learns="dpo")
    assert (kept := pairs.gates[0](won).group) and [a.reward for a in kept.rollouts] == [1.0, 0.0]
    assert isinstance(pairs.losses[0], Dpo) and isinstance(playpen(learns="sft").losses[0], Likelihood)
    alone = playpen(describe=0)
    assert len(alone.envs) == 1 and alone.warmup is not None and len(alone.warmup.envs) == 1
    both = playpen().warmup
    assert both is not None and [(each.name, each.level) for each in both.envs] == [
        ("guess", 2),
        ("describe", 2),
        ("arithmetic", 3),
    ], "a partner is asked sums of two numbers of two digits"


# ---- imagined-conversations


def test_personas_talk_well_and_badly(tmp_path: Path) -> None:
    env, policy = Guess(3), policy_of(save_folder(tmp_path), Recording([]))
    ends: dict[str, list[float]] = {}
    for persona in ("halves", "wanders", "counts"):
        for key in range(30):
            talk = policy.dialogue(env.task(key), Start("0/0", key))
            rollout = asyncio.run(play(Imagined((persona,)), env, talk))
            assert rollout.origin is Origin.TEACHER and rollout.num_sampled == 0
            ends.setdefault(persona, []).append(sum(rollout.turn_rewards))
    assert np.mean(ends["halves"]) == 1.0 > np.mean(ends["wanders"]) > np.mean(ends["counts"]) > 0
    low = Task((Message("user", "guess 1..8 in 4"),), "1", "guess", 3)
    said = asyncio.run(play(Imagined(("halves",)), env, policy.dialogue(low, Start("0/0", 1))))
    words = ["<think>1..8</think>4", "<think>1..3</think>2", "<think>1..1</think>1"]
    assert [each.message.content for each in said.turns] == words, "what is left, halved"
    with pytest.raises(ConfigurationError, match="at least 1 persona"):
        Imagined(())


def test_good_turns_are_imitated_more_and_beta_0_is_cloning() -> None:
    rollout = made(turn("ab"), turn("c"))
    rollout.policy_statistics["turn_advantages"] = np.array([0.5, -1.0])
    for beta, expected in (
        (0.0, [1.0] * 3),
        (1.0, [math.exp(0.5)] * 2 + [math.exp(-1)]),
        (9.0, [20.0] * 2 + [math.exp(-9)]),
    ):
        ExponentialWeights(beta)([Group(0, TASK, [rollout])])
        assert rollout.advantages is not None and rollout.advantages.tolist() == pytest.approx(expected)
    assert ExponentialWeights(limit=1.0).limit == 1.0
    assert ExponentialWeights().learn([Group(0, TASK, [rollout] * 2)]) == pytest.approx(
        {"weight_lost": (40 + math.exp(-9)) / 3}
    )
    silent = made()
    silent.policy_statistics["turn_advantages"] = np.zeros(0)
    ExponentialWeights()([Group(0, TASK, [silent])])
    assert ExponentialWeights().learn([Group(0, TASK, [silent])]) == {}, "nothing was said"
    rollout.policy_statistics = {}
    with pytest.raises(ConfigurationError, match="TurnCritic"):
        ExponentialWeights()([Group(0, TASK, [rollout])])


def test_the_upper_expectile_is_what_good_turns_earn() -> None:
    """Of 0 and 1, equally often, the tau-expectile is tau: by descent on the weighted square."""
    short = torch.tensor([0.5, -0.5])
    assert expectile_weights(short, 0.5).tolist() == [1.0, 1.0]
    assert expectile_weights(short, 0.8).tolist() == pytest.approx([1.6, 0.4])
    value = torch.zeros((), requires_grad=True)
    for _ in range(400):
        left = torch.tensor([0.0, 1.0]) - value
        (slope,) = torch.autograd.grad((expectile_weights(left, 0.8) * left.square()).mean(), value)
        value = (value - 0.1 * slope).detach().requires_grad_()
    assert float(value.detach()) == pytest.approx(0.8, abs=1e-4)
    with pytest.raises(ConfigurationError, match="expectile"):
        TurnCritic(expectile=1.0)


# ---- vsc-rl


def test_parts_of_a_goal_are_paid_once_and_in_order() -> None:
    assert subgoals("sum red blue to gold") == ["get red", "get blue", "set gold", "answer"]
    assert subgoals("12+3=?") == ["answer"]
    env = Subgoals(KeyValue(2))
    task = next(each for each in map(env.task, range(99)) if " to " in each.messages[0].content)
    assert task.id != KeyValue(2).task(0).id
    for index in range(2):
        assert plain(env.task(index)).messages == KeyValue(2).task(index).messages
        assert plain(env.task(index, True)).messages == KeyValue(2).task(index, True).messages
    prompt = plain(task).messages[0].content
    first, second, store, _ = subgoals(prompt)
    assert task.messages[0].content == f"{prompt} now: {first}"

    async def played(*completions: str) -> list[Any]:
        episode = env.episode()
        await episode.reset(task)
        return [await episode.step(Message("assistant", each)) for each in completions]

    def call(text: str) -> str:
        return f"<call>{text}</call>"

    found = asyncio.run(played(call(second), call(first), call(first), call(second)))
    assert [each.reward for each in found] == [0.0, 0.25, 0.0, 0.25], "the current part alone, and once"
    now = [each.messages[-1].content.rpartition(" now: ")[2] for each in found]
    assert now == [first, second, second, store], "never back"
    total = sum(int(each.messages[-1].content.split()[0]) for each in (found[1], found[3]))
    goal = asyncio.run(played(call(first), call(second), call(f"{store} {total}"), str(total)))
    assert [each.reward for each in goal] == [0.25] * 4 and goal[-1].done
    skipped = asyncio.run(played(call(f"{store} {total}"), str(total)))
    assert [each.reward for each in skipped] == [0.0, 1.0], "the full goal: nothing is left of it"
    assert asyncio.run(played(str(total)))[0].reward == 0.0 and env.check(task, str(total)) == 1.0


def test_a_goal_of_one_part_pays_what_it_pays_by_itself(tmp_path: Path) -> None:
    env = Subgoals(Describe(2))
    task = env.task(0)
    number = int(task.answer)
    found = talked(env, task, tmp_path, f"{number - 1}+2", f"{number - 1}+1")
    assert found.turn_rewards == (0.0, 0.5), "in the second round"
    assert talked(env, task, tmp_path, "no").turn_rewards == (0.0,)


def test_the_best_rollouts_are_cloned_beside_other_credit() -> None:
    group = make_group([0.2, 0.9, 0.5, 0.9, 1.0], failed=[4])
    WithBestCloned(Constant(), share=0.5, weight=2.0)([group])
    assert [None if a.advantages is None else float(a.advantages[0]) for a in group.rollouts] == [1, 3, 1, 3, None]
    assert WithBestCloned(Constant(), weight=2.0).learn([group]) == {"cloned_share": 0.5, "stepwise_share": 1.0}
    whole = make_group([1.0] * 29)
    WithBestCloned(Constant(), share=7 / 29 - 1e-12)([whole])
    assert WithBestCloned(Constant()).learn([whole])["cloned_share"] == pytest.approx(7 / 29), (
        "a rounding error less than 7"
    )
    alone = make_group([1.0])
    WithBestCloned(Constant())([alone])
    assert WithBestCloned(Constant()).learn([alone]) == {"cloned_share": 1.0, "stepwise_share": 1.0}
    assert WithBestCloned(Constant()).learn([]) == {"cloned_share": 0.0, "stepwise_share": 0.0}
    group.rollouts[1].set_advantage(2.0)
    group.rollouts[0].set_advantage(0.0)
    assert WithBestCloned(Constant(), weight=2.0).learn([group])["stepwise_share"] == 0.5
    group = make_group([0.2, 0.1])
    WithBestCloned(Constant(), share=0.1)([group])
    assert [float(a.advantages[0]) for a in group.scored if a.advantages is not None] == [2, 1], "at least one"
    with pytest.raises(ConfigurationError, match="share above 0"):
        WithBestCloned(Constant(), share=0.0)


def test_what_stands_in_two_places_of_a_run_learns_once() -> None:
    """The memory of experiences is in the environments and in the sampler, and would keep each of them twice."""
    found = learners_of(dreamgym())
    assert sum(isinstance(part, Experiences) for part in found) == 1 and len({id(part) for part in found}) == len(found)
