"""OpenWebVoyager: rollouts one after the other until a judge reports success, on sites of text pages."""

from __future__ import annotations

import asyncio
import json
import math
from dataclasses import dataclass, field, replace

import pytest

from strop.environments.bundled.pages import TextPages, answered, links_of
from strop.errors import ConfigurationError
from strop.filter.gates.successes_only import Successes
from strop.generate.llm_clients.without_model import Procedural
from strop.recipes.agent.openwebvoyager import VERDICT, SuccessVerdict, UntilSuccess
from strop.roles import LLMClient
from strop.standins.judges.outcomes import judged_pages
from strop.types import Group, Message, Outcome, Rollout, Sampling, Task
from tests.building import make_group, turn
from tests.environments.playing import demonstrated, replied

PAGES = {"red": "ruby 40 plum 12", "blue": "rose 7 jade 12"}
SECRET = {"find": "plum", "answer": "12", "pages": PAGES}
TASK = Task((Message("user", "find plum: red blue"),), json.dumps(SECRET), "pages", 1)


def tried(budget: UntilSuccess, outcomes: list[float | None]) -> Group:
    """A group that grows as the budget allows; None is a rollout that failed."""
    group = make_group([])
    while count := budget.rollouts(group):
        assert count == 1
        number = len(group.rollouts)
        outcome = outcomes[number]
        group.rollouts += make_group([outcome or 0.0], number=number, failed=[0] if outcome is None else []).rollouts
    return group


def test_rollouts_of_a_task_stop_at_the_first_success() -> None:
    """fail, good: 2 rollouts of which 1 is kept; five failures keep none."""
    second = tried(UntilSuccess(), [0.0, 1.0, 1.0])
    assert len(second.rollouts) == 2
    kept = Successes()(second).group
    assert kept is not None and [rollout.reward for rollout in kept.rollouts] == [1.0]
    lost = tried(UntilSuccess(), [0.0] * 9)
    assert len(lost.rollouts) == 5 and Successes()(lost).group is None
    assert len(tried(UntilSuccess(), [1.0]).rollouts) == 1


def test_failed_and_unjudged_rollouts_count_but_are_no_success() -> None:
    assert len(tried(UntilSuccess(3), [None, None, None, 1.0]).rollouts) == 3
    pruned = make_group([1.0], pruned=[0])
    assert UntilSuccess(2).rollouts(pruned) == 1
    assert UntilSuccess(2, good=0.5).rollouts(make_group([0.5])) == 0


def test_metrics_are_of_all_tasks_since_the_last_step() -> None:
    budget = UntilSuccess(3)
    for outcomes in ([1.0], [0.0, 0.0, 0.0], [0.0, 1.0]):
        budget.observe(tried(budget, outcomes))
    assert budget == UntilSuccess(3) and repr(budget) == "UntilSuccess(most=3, good=1.0)", "counters are in no recipe"
    with pytest.raises(TypeError):
        UntilSuccess(3, 1.0, [1])  # type: ignore[call-arg]
    again = UntilSuccess(3)
    again.restore(json.loads(json.dumps(budget.state())))
    assert budget.learn([]) == again.learn([]) == {"tries": 2.0, "given_up_share": pytest.approx(1 / 3)}
    assert budget.learn([]) == {"tries": 0.0, "given_up_share": 0.0}
    with pytest.raises(ConfigurationError, match="most >= 1, got 0"):
        UntilSuccess(0)


@pytest.mark.parametrize(
    ("text", "verdict"),
    [
        ("NOT SUCCESS", 0.0),
        ("SUCCESS", 1.0),
        ("The price was found: SUCCESS.", 1.0),
        ("It is NOT A SUCCESS", 0.0),
        ("UNSUCCESSFUL", 0.0),
        ("I did NOT err. SUCCESS", 1.0),
        ("unclear", math.nan),
        ("", math.nan),
    ],
)
def test_verdicts(text: str, verdict: float) -> None:
    assert (VERDICT.read(text) is None) if math.isnan(verdict) else VERDICT.read(text) == verdict


@dataclass
class Judge(LLMClient):
    """A judge that records its questions."""

    asked: list[str] = field(default_factory=list)

    async def ask(self, messages: list[Message], sampling: Sampling, key: int) -> str:  # type: ignore[override]
        assert sampling.temperature == 0.0
        self.asked.append(messages[-1].content)
        return "SUCCESS"


def visited(*pairs: tuple[str, str]) -> Rollout:
    """A rollout of (message read, completion) pairs."""
    turns = [
        replace(turn(1), message=Message("assistant", said), told=(Message("tool", read),) if read else ())
        for read, said in pairs
    ]
    return Rollout("0", TASK, tuple(turns), Outcome.FINISHED)


def scores(reward: SuccessVerdict, rollout: Rollout) -> list[float]:
    return asyncio.run(reward(Group(0, TASK, [rollout])))


def test_the_judge_reads_the_last_pages_and_is_not_asked_without_an_answer() -> None:
    judge = Judge()
    pairs = [("", "<call>open a</call>"), *((f"page {n}", "<call>open b</call>") for n in range(4))]
    assert scores(SuccessVerdict(judge), visited(*pairs)) == [0.0] and not judge.asked
    assert scores(SuccessVerdict(judge, pages=2), visited(*pairs, ("page 4", "<call>answer 12</call>"))) == [1.0]
    (asked,) = judge.asked
    assert (
        "page 3\npage 4" in asked and "page 2" not in asked and "\n12\n[/completion" in asked and "find plum" in asked
    )
    with pytest.raises(ConfigurationError, match="pages >= 1"):
        SuccessVerdict(judge, 0)


def test_the_rule_judge_checks_the_last_pages() -> None:
    reward = SuccessVerdict(Procedural(judged_pages), pages=1)
    right = ("ruby 40 plum 12", "<call>answer 12</call>")
    assert scores(reward, visited(("", "<call>open red</call>"), right)) == [1.0]
    assert scores(reward, visited(right, ("rose 7 jade 12", "<call>answer 12</call>"))) == [0.0], (
        "the page is not among the last ones"
    )
    assert scores(reward, visited(("ruby 40 plum 12", "<call>answer 40</call>"))) == [0.0]
    assert scores(reward, visited(("ruby 40 plum 12", "<call>answer 40\n[other]\nplum 40</call>"))) == [0.0]
    assert judged_pages("[task]\nfind plum: red\n[other]\nplum 1\n[completion]\n1\n\nx") == "SUCCESS"


def test_a_site_by_hand() -> None:
    env = TextPages(1)
    assert env.is_inline and env.pays
    answers = replied(env, TASK, ["<call>open red</call>", "<call>open pink</call>", "12", "<call>answer 12</call>"])
    told = [answer.messages[0].content for answer in answers[:3]]
    assert told == ["ruby 40 plum 12", *["error: open LINK or answer NUMBER"] * 2]
    assert [answer.done for answer in answers] == [False, False, False, True] and answers[3].reward == 1.0
    assert replied(env, TASK, ["<call>answer 40</call>"])[0].reward == 0.0
    # two links, an answer and one turn to spare
    late = replied(env, TASK, ["<call>open red</call>"] * 4)
    assert [answer.done for answer in late] == [False, False, False, True] and late[3].reward == 0.0
    assert answered("<call>open 1</call><call>answer 2</call>") == "2" and not answered("answer 2")
    assert not answered(f"<call>answer {'1' * 21}</call>") and answered(f"<call>answer {'1' * 20}</call>")


@pytest.mark.parametrize("level", range(1, 4))
def test_demonstrations_of_a_site_succeed(level: int) -> None:
    env = TextPages(level)
    lengths = set()
    for index in range(30):
        task = env.task(index, heldout=index % 2 == 1)
        _, paid = demonstrated(env, task)
        assert sum(paid) == 1.0 and len(links_of(task)) == level + 1 and task.answer != env.task(index + 100).answer
        lengths.add(len(paid))
        prices = [price for page in json.loads(task.answer)["pages"].values() for price in page.split()[1::2]]
        assert len(prices) == 2 * (level + 1) and all(len(price) == 2 for price in prices)
    assert lengths == set(range(2, level + 3))
    for refused in (0, 4):
        with pytest.raises(ConfigurationError, match="pages has levels 1 to 3"):
            TextPages(refused)
