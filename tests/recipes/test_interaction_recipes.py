"""grpo-care, comas and oni: numbers worked by hand, and a run of each whose metrics move."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from strop.errors import ConfigurationError
from strop.filter.paid_text import Paid, Span
from strop.filter.span_rewards import pay
from strop.generate.llm_clients.without_model import Canned
from strop.recipes.reward.comas import Discussion, Interactions, PerPolicy
from strop.recipes.reward.grpo_care import AnswerPlace, Consistent
from strop.recipes.reward.oni import LabelledMessages
from strop.standins.judges.comparisons import scored_discussion
from strop.text.llm_prompt import question
from strop.training.advantages.group_relative import GroupStandard
from strop.types import SUCCESS, Group, Message, Observation, Outcome, Rollout, Sampling, Task, Turn

TASK = Task((Message("user", "1+1="),), "2", "test")


def turn(text: str, policy_name: str = "", told: Sequence[str] = ()) -> Turn:
    """A token for each character, behind a prompt of two."""
    count = len(text)
    tokens: Any = np.arange(count)
    said = tuple(Message("tool", each) for each in told)
    prompt: Any = np.zeros(2, np.int64)
    logprobs = np.zeros(count, np.float32)
    return Turn(
        prompt, tokens, logprobs, tokens * 0, Message("assistant", text), Sampling(policy_name=policy_name), told=said
    )


def rollout(name: str, *turns: Turn, reward: float = 0.0) -> Rollout:
    marks: Any = {"rewards": {"outcome": reward}, "facts": {SUCCESS: reward}}
    return Rollout(name, TASK, turns, Outcome.FINISHED, reward=reward, **marks)


def characters(tokens: Any) -> Any:
    return np.arange(1, len(tokens) + 1)


# ---- grpo-care


def with_answer(name: str, right: float, likelihood: float) -> Rollout:
    """Three tokens of working, two of answer whose likelihoods have this geometric mean; the working's are others."""
    made = rollout(name, turn("wwwab"), reward=right)
    aux = {"span/answer": np.array([0, 0, 0, 0, 0, 1, 1], np.float32)}
    made.turns = (replace(made.turns[0], aux=aux),)
    half = np.log(likelihood)
    made.policy_statistics["reference_logprobs"] = np.array([-9.0, -9.0, -9.0, half - 0.1, half + 0.1], np.float32)
    return made


def test_the_cards_numbers_of_the_bonus() -> None:
    """acc 1 1 1 0, c .9 .6 .8 .99: the mean of right ones is .7667; advantage .7071 0 .7071 -1.4142."""
    pairs = [(1.0, 0.9), (1.0, 0.6), (1.0, 0.8), (0.0, 0.99)]
    group = Group(0, TASK, [with_answer(str(i), right, c) for i, (right, c) in enumerate(pairs)])
    failed = Rollout("4", TASK, (), Outcome.FAILED, error="gone")
    group.rollouts.insert(1, failed)
    part = Consistent(GroupStandard(epsilon=0.0))
    assert part.bonuses(group) == pytest.approx([0.5, 0.0, 0.5, 0.0])
    part([group])
    found = [float(each.advantages[0]) for each in group.scored if each.advantages is not None]
    assert found == pytest.approx([0.70711, 0.0, 0.70711, -1.41421], abs=1e-5) and failed.advantages is None
    assert [each.reward for each in group.scored] == [1.0, 1.0, 1.0, 0.0], "what is written down stays"
    told = part.learn([group])
    assert told["consistency"] == pytest.approx((0.9 + 0.6 + 0.8 + 0.95) / 4) and told["consistency_bonus"] == 0.25
    assert told["consistent_share"] == pytest.approx(2 / 3), "of three right ones"
    # .6 misses the mean by .1667
    assert replace(part, margin=0.17).bonuses(group) == [0.5, 0.5, 0.5, 0.0]


def test_who_counts_as_right() -> None:
    part = Consistent(GroupStandard())
    lost = Group(0, TASK, [with_answer(str(i), 0.0, 0.9) for i in range(3)])
    assert part.bonuses(lost) == [0.0, 0.0, 0.0], "nobody: no mean of nothing"
    assert "consistent_share" not in part.learn([lost]), "nor a share of nothing"
    partly = Group(0, TASK, [with_answer(str(i), right, 0.5) for i, right in enumerate((0.1, 0.4, 1.0))])
    assert part.bonuses(partly) == [0.0, 0.0, 0.5], "below the mean of 0.5, or hardly right"
    capped = Group(0, TASK, [with_answer(str(i), 1.0, c) for i, c in enumerate((0.96, 0.99))])
    assert part.bonuses(capped) == [0.5, 0.5], "beyond the cap nobody is more consistent"
    silent = with_answer("2", 1.0, 0.9)
    silent.turns = (replace(silent.turns[0], aux={}),)
    assert part.bonuses(Group(0, TASK, [*capped.rollouts, silent])) == [0.5, 0.5, 0.0], "no answer: 0, not 1"
    assert Consistent.min_group == 2 and part.bonuses(Group(0, TASK, capped.rollouts[:1])) == [0.5]
    with pytest.raises(ConfigurationError, match="0 < cap <= 1"):
        Consistent(GroupStandard(), cap=0.0)


@pytest.mark.parametrize(
    ("completion", "marked"),
    [("<think>w</think> 42 ", "42"), ("42", "42"), ("<think>42", ""), ("<think>w</think>", ""), ("", "")],
)
def test_where_the_answer_stands(completion: str, marked: str) -> None:
    made = rollout("0", turn("first"), turn(completion))
    (paid,) = AnswerPlace()(Group(0, TASK, [made]))
    assert paid.end == 0.0 and [completion[span.start : span.end] for span in paid.spans] == (
        [marked] if marked else []
    )
    assert all((span.turn, span.value, span.each, span.name) == (1, 0.0, 0.0, "answer") for span in paid.spans)


# ---- comas


def test_a_solution_and_its_evaluation_share_a_point() -> None:
    judge = Canned(
        {"\nnone\n[/other": "3", "\nsome\n[/other": "score: 2", "\nfatal\n[/other": "1.", "[other": "perhaps"}
    )
    said = ["a", "none", "bb", "some", "c", "fatal", "d", "what?", "unanswered"]
    made = rollout("0", *(turn(text) for text in said))
    (paid,) = asyncio.run(_awaited(Interactions(judge)(Group(0, TASK, [made]))))
    assert paid.end == 0.0 and all(span.name == "scored" for span in paid.spans)
    values = [(span.turn, span.end, span.value) for span in paid.spans]
    assert values == [(0, 1, 1.0), (1, 4, 0.0), (2, 2, 0.5), (3, 4, 0.5), (4, 1, 0.0), (5, 5, 1.0)]


async def _awaited(work: Any) -> Any:
    return await work


def test_the_rule_that_scores_knows_no_answer() -> None:
    def asked(completion: str, other: str) -> str:
        return scored_discussion(question("?", task="1+2+3=?", completion=completion, other=other))

    right = "<think>1+2=3 3+3=6</think>6"
    assert asked(right, "6") == "3" and asked(right, "<think>1+2=3</think>7") == "2"
    assert asked("<think>1+2=4 4+3=7</think>7", "7") == "1" and asked("<think>1+2=3", "6") == "1"


def test_each_policy_is_measured_by_itself_and_what_was_not_scored_gets_nothing() -> None:
    """Policy name a wrote 2 tokens at 1 and 1 at 0: mean 2/3, std sqrt(2)/3; policy name b one turn alone: 0; the rest:
    0.
    """
    made = [
        rollout("0", turn("xx", "a"), turn("yyy", "b"), turn("zz", "a")),
        rollout("1", turn("v", "a")),
    ]
    for each, spans in zip(made, ([(0, 2, 1.0), (1, 3, 0.5)], [(0, 1, 0.0)]), strict=True):
        paid = Paid(0.0, tuple(Span(number, 0, end, value, name="scored") for number, end, value in spans))
        each.reward = pay(each, "interactions", 1.0, paid, characters)
    group = Group(0, TASK, made)
    PerPolicy(kl=0.0, epsilon=0.0)([group])
    high, low = (1 - 2 / 3) / (2**0.5 / 3), (0 - 2 / 3) / (2**0.5 / 3)
    assert made[0].advantages is not None and made[1].advantages is not None
    np.testing.assert_allclose(made[0].advantages, [high, high, 0, 0, 0, 0, 0], atol=1e-6)
    np.testing.assert_allclose(made[1].advantages, [low], atol=1e-6)
    told = PerPolicy(kl=0.0).learn([group])
    assert told == {"policy_names": 2.0, "scored_share": 0.75, "solution_pay": 0.5}


def test_the_price_of_the_kl_counts_from_a_token_to_its_turns_end() -> None:
    """log ratios .1 .2 | .4, price 1: returns 1 - .3, 1 - .2 | 0 - .4; nothing of the second turn in the first."""
    made = rollout("0", turn("xx", "a"), turn("y", "a"))
    paid = Paid(0.0, (Span(0, 0, 2, 1.0, name="scored"), Span(1, 0, 1, 0.0, name="scored")))
    made.reward = pay(made, "interactions", 1.0, paid, characters)
    made.policy_statistics = {"logprobs": np.array([0.1, 0.2, 0.4]), "reference_logprobs": np.zeros(3)}
    PerPolicy(kl=1.0, epsilon=0.0)([Group(0, TASK, [made])])
    returns = np.array([0.7, 0.8, -0.4])
    assert made.advantages is not None
    np.testing.assert_allclose(made.advantages, (returns - returns.mean()) / returns.std(), atol=1e-6)
    with pytest.raises(ConfigurationError, match="kl >= 0"):
        PerPolicy(kl=-1.0)


class Heard:
    """A dialogue that answers with the number of the completion, and keeps what each aside read."""

    is_cut = False
    key = 5

    def __init__(self) -> None:
        self.turns: tuple[Turn, ...] = ()
        self.read: list[tuple[str, str]] = []

    def aside(self, messages: Sequence[Message], policy_name: str = "") -> Heard:
        self.read.append((messages[-1].content, policy_name))
        return self

    async def completion(self) -> Message:
        return Message("assistant", f"<think>w</think>{len(self.read)}")


class Pays:
    async def reset(self, task: Task) -> None:
        return None

    async def step(self, completion: Message) -> Observation:
        self.heard = completion.content
        return Observation(reward=0.25)


def test_who_speaks_is_drawn_and_reads_the_last_rounds() -> None:
    dialogue, env = Heard(), Pays()
    agent: Any = Discussion(agents=3, rounds=3, history=1)
    paid = asyncio.run(agent.rollout(TASK, dialogue, env))
    assert paid == (0.0, 0.0, 0.0, 0.0, 0.0, 0.25) and env.heard.endswith("5"), "the last solution"
    assert [read for read, _ in dialogue.read] == [
        "1+1=",
        "1+1= hint: w 1",
        "1+1= hint: w 1 w 2",
        "1+1= hint: w 1 w 2 w 3",
        "1+1= hint: w 3 w 4",
        "1+1= hint: w 3 w 4 w 5",
    ]
    stream = random.Random(5)
    assert [policy_name for _, policy_name in dialogue.read] == [f"agent {stream.randrange(3)}" for _ in range(6)]
    with pytest.raises(ConfigurationError, match="agents >= 1"):
        Discussion(agents=0)


# ---- oni


def labelling(**more: Any) -> LabelledMessages:
    return LabelledMessages(Canned({"]\nerror": "no", "]\n?": "well", "[completion": "Yes."}), **more)


def told(name: str, *heard: Sequence[str]) -> Rollout:
    """A rollout whose environment said this after each of its turns but the last."""
    return rollout(name, turn("x"), *(turn("yy", told=each) for each in heard))


def values(part: LabelledMessages, *rollouts: Rollout) -> list[list[float]]:
    marks: Sequence[Paid] = asyncio.run(_awaited(part(Group(0, TASK, list(rollouts)))))
    return [[span.value for span in paid.spans] for paid in marks]


def test_a_message_earns_nothing_before_its_label_and_a_27th_at_its_third_sighting() -> None:
    part, made = labelling(), told("0", ["7"], ["7"], ["error: no"], ["7", "?"])
    assert values(part, made) == [[0.0, 0.0, 0.0, 0.0]] == values(part, made), "labels come late"
    assert part.learn([Group(0, TASK, [made])]) == {"labels": 3.0, "labels_yes": 1.0, "labels_waiting": 0.0}
    assert values(part, made, told("1", ["7"], ["new"])) == [
        [1.0, pytest.approx(1 / 8), 0.0, pytest.approx(1 / 27)],
        [1.0, 0.0],
    ]
    spans = asyncio.run(_awaited(part(Group(0, TASK, [made]))))[0].spans
    assert [(span.turn, span.start, span.end) for span in spans] == [(0, 0, 1), (1, 0, 2), (2, 0, 2), (3, 0, 2)]


def test_labels_of_a_draw_count_and_no_others_and_a_full_queue_drops() -> None:
    part, drawn, other = labelling(queue=2), told("0", ["1"]), told("1", ["2"])
    values(part, drawn, other, told("2", ["3"]))
    assert part.learn([Group(0, TASK, [drawn])]) == {"labels": 1.0, "labels_yes": 1.0, "labels_waiting": 1.0}
    again = labelling(queue=2)
    again.restore(part.state())
    assert values(again, drawn, other) == values(part, drawn, other) == [[1.0], [0.0]]
    assert again.state() == part.state() == {"labels": {"1": 1.0}, "waiting": {"2": 1.0}}
    assert again == (fresh := labelling(queue=2)) and repr(again) == repr(fresh), "what it has seen is no setting"
    assert labelling(queue=1).queue == 1
    with pytest.raises(ConfigurationError, match="queue >= 1"):
        labelling(queue=0)


class Slow(Canned):
    """Answers when all who ask at once have asked."""

    async def ask(self, messages: Sequence[Message], sampling: Sampling, key: int) -> str:
        await asyncio.sleep(0)
        return await super().ask(messages, sampling, key)


def test_the_queue_holds_what_groups_ask_about_at_once() -> None:
    """Three groups at once and two places: the first takes one, the second one of two, the third what is asked."""
    part = LabelledMessages(Slow({"[completion": "yes"}), queue=2)
    groups = [Group(n, TASK, [told(str(n), *said)]) for n, said in enumerate(([["1"]], [["2"], ["3"]], [["1"], ["4"]]))]

    async def at_once() -> None:
        await asyncio.gather(*(_awaited(part(group)) for group in groups))

    asyncio.run(at_once())
    assert part.state() == {"labels": {}, "waiting": {"1": 1.0, "2": 1.0}}
    part.learn(groups)
    assert part.state() == {"labels": {"1": 1.0, "2": 1.0}, "waiting": {}}
    asyncio.run(at_once())
    assert part.state()["waiting"] == {"3": 1.0, "4": 1.0}, "those who asked have left their places"
