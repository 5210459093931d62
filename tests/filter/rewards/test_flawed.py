"""Right answers by wrong steps: what they are paid, whom it helps when, and how the judge of steps is trained."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from strop.environments.bundled.arithmetic import Arithmetic
from strop.environments.data.heldout_split import is_heldout, prompt_of
from strop.environments.data.table import Table
from strop.environments.judging.first_error import FirstError, truth
from strop.environments.judging.first_error_question import CLEAN, located, numbered_in, question_about, steps_of
from strop.environments.needs import problems
from strop.errors import ConfigurationError, LLMClientError
from strop.filter.rewards.from_environment import Earned
from strop.filter.scoring import Scorer
from strop.generate.llm_clients.named import Named
from strop.generate.llm_clients.openai_endpoint import Endpoint
from strop.generate.llm_clients.without_model import Procedural
from strop.recipes.named_parts import KEY_VARIABLE
from strop.recipes.reward.fapo.recipe import fapo
from strop.recipes.reward.fapo.reward import Flawed
from strop.recipes.reward.fapo_genrm import ErrorDistance, fapo_genrm
from strop.recipes.reward.rlcf import Checklist, rlcf
from strop.recipes.reward.rlpt import rlpt
from strop.recipes.reward.rlsp import rlsp
from strop.recipes.reward.spct_votes import spct_votes
from strop.recipes.setting import Setting
from strop.roles import LLMClient
from strop.standins.judges.steps import first_error
from strop.training.advantages.group_relative import GroupStandard
from strop.types import Group, Message, Outcome, Rollout, Sampling, Task
from tests.building import advantages_of, turn

SUM = Task((Message("user", "2+3+4=?"),), "9", "arithmetic", 1)
CLEANLY, BADLY, WRONG = "<think>2+3=5 5+4=9</think>9", "<think>2+3=6 6+4=9</think>9", "<think>2+3=6 6+4=10</think>10"


@dataclass
class Saying(LLMClient):
    """Always the same, and keeps what it was asked."""

    answer: str
    asked: list[str] = field(default_factory=list)

    async def ask(self, messages: Sequence[Message], sampling: Sampling, key: int) -> str:
        self.asked.append(messages[-1].content)
        assert sampling.temperature == 0, "what a judge finds is not left to chance"
        if not self.answer:
            raise LLMClientError("nobody is there")
        return self.answer


def saying(task: Task, *completions: str) -> Group:
    turns = [(replace(turn(2), message=Message("assistant", completion)),) for completion in completions]
    paid = [(float(completion.endswith(f">{task.answer}")),) for completion in completions]
    pairs = enumerate(zip(turns, paid, strict=True))
    return Group(0, task, [Rollout(str(n), task, t, Outcome.FINISHED, turn_rewards=p) for n, (t, p) in pairs])


def scored(group: Group, judge: LLMClient, penalty: float = 1.0) -> list[float]:
    asyncio.run(Scorer([Flawed(Earned(), judge, penalty)])(group))
    return [rollout.reward for rollout in group.rollouts]


RULES = Procedural(first_error)


def test_paid_by_hand() -> None:
    group = saying(SUM, CLEANLY, BADLY, WRONG)
    assert scored(group, RULES) == [1, 0, -1]
    assert [rollout.facts.get("flawed") for rollout in group.rollouts] == [0, 1, None]
    assert scored(saying(SUM, CLEANLY, BADLY, WRONG), RULES, penalty=0.5) == [1, 0.5, -1]


@pytest.mark.parametrize("said", ["", "none of them", "7", "-2", "<think>0"])
def test_a_judge_that_fails_finds_no_flaw(said: str) -> None:
    """Also one that names a step which the completion has not: there are three, with the answer."""
    judge = Saying(said)
    group = saying(SUM, BADLY, WRONG)
    assert scored(group, judge) == [1, -1] and len(judge.asked) == 1, "wrong answers are not judged"
    assert "flawed" not in group.rollouts[0].facts


@pytest.mark.parametrize(("clean", "wrong", "sign"), [(1, 6, 1), (6, 1, -1), (3, 3, 0), (1, 2, 1), (2, 1, -1)])
def test_a_flawed_rollout_is_pushed_up_while_wrong_ones_prevail(clean: int, wrong: int, sign: int) -> None:
    """The mean of `clean` times 1, one 0 and `wrong` times -1 has the sign of clean - wrong."""
    group = saying(SUM, BADLY, *[CLEANLY] * clean, *[WRONG] * wrong)
    scored(group, RULES)
    GroupStandard()([group])
    first = advantages_of(group)[0]
    assert first is not None and (first > 0) - (first < 0) == sign


def test_steps_and_numbers() -> None:
    assert steps_of(CLEANLY) == ["2+3=5", "5+4=9", "9"]
    assert steps_of("First\nthis.\n\nThen that.\n\n") == ["First this.", "Then that."]
    asked = question_about("2+3+4=?", "9", "a\n7: forged\n\nb [task] c")
    assert numbered_in(asked) == ["a 7: forged", "b (task) c"]
    assert first_error(question_about("", "9", BADLY)) == "0"
    assert first_error(question_about("", "9", "<think>2+3=5 5+4=8</think>9")) == "1"
    assert first_error(question_about("", "9", CLEANLY)) == "-1"
    assert [located(said, 3) for said in ("2", "3", "-1", "so 0, or 1", "")] == [2, None, -1, 1, None]


def test_solutions_go_wrong_where_the_env_says() -> None:
    """The rule, which knows nothing of how they were made, finds the same first mistakes; half of all have none."""
    env = FirstError(Arithmetic(5))
    tasks = [env.task(index) for index in range(200)]
    wrongs = [truth(task)[0] for task in tasks]
    assert [int(first_error(prompt_of(task))) for task in tasks] == wrongs
    assert 80 <= wrongs.count(CLEAN) <= 120 and {0, 1, 2} <= set(wrongs)
    assert all(truth(task)[1] == 4 for task in tasks), "three sums and the answer"
    assert all(env.check(task, env.solution(task)) == 1 for task in tasks)
    shown = [prompt_of(task).partition("[answer]")[2].split()[0] for task in tasks]
    assert shown == [Arithmetic(5).task(index).answer for index in range(200)], "the answer shown is right"
    asked = prompt_of(env.task(3, heldout=True)).partition("\n")[2].partition("\n")[0]
    assert is_heldout(asked), "sides are those of the sums"


def test_the_judge_is_paid_by_verdict_and_distance() -> None:
    env = FirstError(Arithmetic(5))
    flawed = next(task for task in map(env.task, range(99)) if truth(task) == (2, 4))
    clean = next(task for task in map(env.task, range(99)) if truth(task) == (-1, 4))
    completions = ("2", "1", "0", "3", "-1", "4", "what?")
    assert ErrorDistance()(saying(flawed, *completions)) == [1, 0.75, 0.5, 0.75, -1, -1, -1]
    assert ErrorDistance()(saying(clean, *completions)) == [-1, -1, -1, -1, 1, -1, -1]


def test_what_cannot_work_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="penalty <= 2, from right to wrong; got 3"):
        Flawed(Earned(), RULES, 3)
    assert problems(fapo_genrm(Setting(env="guess:1")))[0].startswith("environment guess has no worked solutions")


def test_steps_of_a_table_are_its_sentences(tmp_path: Path) -> None:
    """One of them may be wrong; steps of a completion in one paragraph are sentences, never words."""
    solution = "Ann has 3 apples. She buys 4, so she has 7. So 7"
    path = tmp_path / "rows.jsonl"
    rows = [{"prompt": f"Task {place}?", "solution": solution, "answer": "7"} for place in range(40)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    env = FirstError(Table(str(path)))
    tasks = [env.task(place) for place in range(30)]
    assert {truth(task) for task in tasks} == {(-1, 2), (0, 2), (1, 2)}
    for task in tasks:
        shown = numbered_in(task.messages[0].content)
        right = ["Ann has 3 apples.", "She buys 4, so she has 7."]
        wrong = [place for place, (one, other) in enumerate(zip(shown, right, strict=True)) if one != other]
        assert wrong == [place for place in [truth(task)[0]] if place >= 0]
    assert steps_of(solution) == ["Ann has 3 apples.", "She buys 4, so she has 7.", "So 7"]
    assert steps_of("<think>1+2=3 3+4=7</think>7") == ["1+2=3", "3+4=7", "7"]


def test_who_asks_a_model_has_the_time_for_all_its_answers() -> None:
    address = "http://127.0.0.1:1/v1#judge"
    for recipe in (fapo, spct_votes, rlpt, rlsp, rlcf):
        assert (recipe().reward_seconds, recipe(judge=address).reward_seconds) == (10, 600), recipe.__name__
    assert spct_votes(meta=address).reward_seconds == 600
    checklist, rules = rlcf(judge=address).rewards[0], rlcf().rewards[0]
    assert isinstance(checklist, Checklist) and isinstance(rules, Checklist)
    assert checklist.verifier is None and rules.verifier is not None, "rules know no items but their own"
    assert (
        checklist.judge
        == checklist.task_generator
        == Named(Endpoint("http://127.0.0.1:1/v1", "judge", key_variable=KEY_VARIABLE), "judge", address)
    )


def test_the_recipes_measure_what_the_env_pays_and_train_on_the_judgement() -> None:
    run = fapo(Setting(env="countdown:3"))
    flawed, measured, overlong = run.rewards
    assert isinstance(flawed, Flawed) and isinstance(flawed.inner, Earned) and flawed.judge == RULES
    assert measured == Earned(weight=0.0) and overlong.weight == 1 and run.evaluation.rewards == (Earned(),)
    judge = fapo_genrm(Setting(env="arithmetic:5+arithmetic:4"))
    assert judge.warmup is not None and judge.envs == judge.warmup.envs
    assert [env.name for env in judge.envs] == ["first-error-arithmetic"] * 2
