"""trace: what is lacking by hand, environments of practice by hand, which are taken, who speaks, and a run that goes
on.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from strop.environments.bundled.keyvalue import KeyValue
from strop.environments.data.heldout_split import is_heldout, prompt_of
from strop.errors import ConfigurationError, LLMClientError
from strop.filter.rewards.from_environment import Earned
from strop.generate.llm_clients.without_model import Canned
from strop.generate.rollout import play
from strop.generate.strategies.independent import Independent
from strop.recipes.agent.trace.agent import PolicyRouter
from strop.recipes.agent.trace.recipe import trace
from strop.recipes.agent.trace.skill_practice import Practice
from strop.recipes.agent.trace.store_skills import SKILLS, chosen, described, exercised, lacking
from strop.recipes.agent.trace.strategy import HasPolicy, PolicyPerEnvironment, SkillGaps
from strop.recipes.agent.trace.task_generator import SkillCurriculum
from strop.recipes.setting import Setting
from strop.roles import LLMClient
from strop.text.llm_prompt import question
from strop.types import SUCCESS, Group, Message, Origin, Outcome, Rollout, Sampling, Start, Task, Turn
from tests.building import make_group
from tests.control.asking import Told, group_of
from tests.generate.talking import Recording, policy_of, save_folder
from tests.parts import LongerIsBetter
from tests.recipes.going_on import SIZES, acts_and_goes_on
from tests.tiny_models import save_pocket_like

STORE = KeyValue(2)
KEPT = Task((Message("user", "sum red blue to gold"),), json.dumps({"store": {"red": 3, "blue": 4}, "total": 7}), "x")
PRACTICE = tuple(Practice(skill, level) for skill in ("add", "lookup") for level in (1, 2, 3, 4))


# ---- ranking


def test_shortfalls_by_hand() -> None:
    """4 failed and 2 succeeded: lookup 3/4 - 1/2, store 1/4 - 0, add 2/4 - 1/2."""
    failed = [["lookup", "add"], ["lookup", "add"], ["lookup", "store"], []]
    found = SkillGaps().joined([(False, names) for names in failed])
    assert found.ranked() == ["lookup", "add", "store"], "nobody succeeded: of none, the share is 0"
    both = found.joined([(True, ["lookup", "add"]), (True, [])])
    assert [both.gap(name) for name in ("lookup", "store", "add", "sing")] == [0.25, 0.25, 0.0, 0.0]
    assert both.ranked() == ["lookup", "store"], "lacking equally in both ranks 0, and equal ones go by letters"
    assert both.joined([(True, ["lookup"])] * 2).gap("lookup") == 0 and found.seen == [4, 0], "others are not changed"


# ---- skills and their environments


@pytest.mark.parametrize(
    ("known", "stored", "answer", "expected"),
    [
        ({"red": 3, "blue": 4}, {"gold": "7"}, "7", (True, True, True)),
        ({"red": 3, "blue": 4}, {}, "7", (True, True, False)),
        ({"red": 3, "blue": 4}, {"gold": "8"}, "8", (True, False, True)),
        ({"red": 3}, {"gold": "7"}, "7", (False, None, True)),
        ({"red": 3, "blue": 4}, {"lime": "7"}, "", (True, False, False)),
    ],
)
def test_what_an_rollout_showed(
    known: Mapping[str, int], stored: Mapping[str, str], answer: str, expected: tuple[bool | None, ...]
) -> None:
    assert tuple(exercised("sum red blue to gold", known, stored, answer)[name] for name in SKILLS) == expected
    assert exercised("sum red blue", known, stored, answer)["store"] is None, "there is nowhere to put it"
    steps = [f"<call>get {key}</call> -> {value}" for key, value in known.items()]
    steps += [f"<call>set {key} {value}</call> -> ok" for key, value in stored.items()]
    steps += ["<call>get gray</call><call>get pink</call> -> 1 ; error: no such key"]
    asked = question("?", task="sum red blue to gold", ideas="\n".join(steps), completion=f"<think>so</think>{answer}")
    missing = [name for name, is_shown in zip(SKILLS, expected, strict=True) if is_shown is False]
    assert lacking(asked) == ("\n".join(missing) or "none")


def test_a_rule_picks_a_skill_that_is_offered() -> None:
    def picked(task: str, *offered: str) -> str:
        return chosen(question("?", task=task, requirements=described(offered)))

    assert picked("sum red blue to gold", "add", "store") == "store" and picked("sum red blue to gold", "add") == "none"
    assert picked("sum a b c", *SKILLS) == "add" and picked("sum a b", *SKILLS) == "none"
    assert picked("sum a b c d e", *SKILLS) == "lookup" and picked("sum a b c d e", "add") == "add"


@pytest.mark.parametrize(
    ("calls", "answer", "expected"),
    [
        (["get red", "get blue", "set gold 7"], "7", {"lookup": 1.0, "add": 1.0, "store": 1.0}),
        (["get red", "get blue", "set gold 9"], "9", {"lookup": 1.0, "add": 0.0, "store": 1.0}),
        (["get red", "set gold 7"], "7", {"lookup": 0.0, "add": 0.0, "store": 1.0}),
        (["get red", "get blue"], "7", {"lookup": 1.0, "add": 1.0, "store": 0.0}),
        ([], "7", {"lookup": 0.0, "add": 0.0, "store": 0.0}),
    ],
)
def test_a_env_pays_for_its_skill_alone(calls: list[str], answer: str, expected: dict[str, float]) -> None:
    async def paid(skill: str) -> float | None:
        episode = Practice(skill, 2).episode()
        await episode.reset(KEPT)
        for call in calls:
            said = await episode.step(Message("assistant", f"<call>{call}</call>"))
            assert not said.done and said.reward == 0.0
        return (await episode.step(Message("assistant", answer))).reward

    assert {skill: asyncio.run(paid(skill)) for skill in SKILLS} == expected


def test_tasks_give_occasion_and_stay_on_their_side() -> None:
    for skill in SKILLS:
        env = Practice(skill, 2)
        tasks = [env.task(index) for index in range(30)]
        assert all(task.source == env.name == f"practice {skill}" and task.level == 2 for task in tasks)
        assert not any(is_heldout(prompt_of(task)) for task in tasks) and is_heldout(prompt_of(env.task(0, True)))
        assert len({task.id for task in tasks}) > 20 and tasks == [Practice(skill, 2).task(i) for i in range(30)]
        assert all(" to " in prompt_of(task) for task in tasks) == (skill == "store")
        assert tasks[0].id != STORE.task(0).id and env.answer("<think>a</think>12") == "12"
        assert env.check(KEPT, "7") == 1.0 and env.check(KEPT, "8") == 0.0
    with pytest.raises(ConfigurationError, match="there is no skill 'ad'"):
        Practice("ad", 1)
    with pytest.raises(ConfigurationError, match="keyvalue"):
        Practice("add", 9)


# ---- the task generator


class Probed:
    """A player in whose hands a known share of rollouts succeeds, by skill and level."""

    def __init__(self, shares: Mapping[tuple[str, int], float]) -> None:
        self.shares, self.tried = shares, list[tuple[str, int]]()

    def another(self, **changes: Any) -> Start:
        return Start("0/0", len(self.tried))

    async def __call__(self, start: Start, agent: Any = None, task: Task | None = None) -> Rollout:
        assert task is not None and agent is None
        place = (task.source.removeprefix("practice "), task.level)
        self.tried.append(place)
        mark = float(self.tried.count(place) <= 10 * self.shares[place])
        return Rollout(start.id, task, (), Outcome.FINISHED, reward=mark)

    async def score(self, rollouts: Sequence[Rollout]) -> list[Rollout | None]:
        return [replace(rollout, facts={SUCCESS: rollout.reward}) for rollout in rollouts]


def told(*labels: str) -> Told:
    return Told({"lacking": list(labels)})


def shown(task_generator: SkillCurriculum, group: Group, player: Any) -> list[Task]:
    made = asyncio.run(task_generator(group, player))
    task_generator.observe(group)
    return made


def tried(number: int, *rewards: float, level: int = 2) -> Group:
    return group_of(KeyValue(level).task(number), rewards, number, 0)


def levels(task_generator: SkillCurriculum) -> dict[str, float]:
    return {name: value for name, value in task_generator.learn([]).items() if name.startswith("practice_level")}


@pytest.mark.parametrize(
    ("shares", "level", "places"),
    [
        ((0, 0.1, 0, 0), None, [2, 1]),  # 10 % is too hard, and nothing is easier than level 1
        ((0.9, 0.9, 0.9, 0.9), None, [2, 3, 4]),  # 90 % is too easy
        ((0.9, 0.1, 0, 0), None, [2, 1]),  # the way back is not taken
        ((0, 0.2, 0, 0), 2, [2]),
        ((0, 0.6, 0, 0), 2, [2]),
        ((0, 0.7, 0.3, 0), 3, [2, 3]),
        ((0.5, 0.1, 0.3, 0), 1, [2, 1]),
    ],
)
def test_a_env_is_taken_where_the_first_weights_succeed_at_times(
    shares: tuple[float, ...], level: int | None, places: list[int]
) -> None:
    player = Probed({("add", number): share for number, share in enumerate(shares, start=1)})
    task_generator = SkillCurriculum(told("add"), PRACTICE, passes=1, after=2, probes=10)
    if level is None:
        with pytest.raises(ConfigurationError, match="no skill to practise: 2 of 2 rollouts failed"):
            shown(task_generator, tried(0, 0.0, 0.0), player)
    else:
        assert shown(task_generator, tried(0, 0.0, 0.0), player) == [] and levels(task_generator) == {
            "practice_level/add": level
        }
        assert task_generator.learn([])["practice_before/add"] == pytest.approx(shares[level - 1])
    assert list(dict.fromkeys(player.tried)) == [("add", place) for place in places]


def test_a_label_needs_more_than_half_of_the_passes() -> None:
    """Of 4 labels add is said by 3 and lookup by 2; named twice in one label counts once."""
    labels = ["add\nlookup", " add \nadd\nsing", "lookup\nlookup", "add"]
    task_generator = SkillCurriculum(told(*labels), PRACTICE, passes=4, after=9, probes=10)
    shown(task_generator, tried(0, 0.0), Probed({}))
    metrics = task_generator.learn([])
    assert (metrics["lacking/add"], metrics["lacking/lookup"], metrics["practised"]) == (1.0, 0.0, 0.0)


def test_labels_see_the_rollout_and_not_what_it_was_paid() -> None:
    llm_client = told("none")
    group = tried(0, 1.0)
    nothing: Any = np.zeros(0, np.int64)
    first, last = (
        Turn(nothing, nothing, nothing, nothing, Message("assistant", t)) for t in ("<call>get red</call>", "9")
    )
    heard = (Message("tool", "3"), Message("tool", "[completion]\n4"))
    group.rollouts[0].turns = (first, replace(last, told=heard))
    shown(SkillCurriculum(llm_client, PRACTICE, passes=2, after=9), group, Probed({}))
    assert (
        llm_client.asked
        == [
            {
                "wanted": "lacking",
                "task": prompt_of(group.task),
                "requirements": described(["add", "lookup"]),
                "ideas": "<call>get red</call> -> 3 ; (completion) 4",
                "completion": "9",
            }
        ]
        * 2
    )


def test_what_is_ranked_is_practised_and_nothing_else() -> None:
    """Two failures lack lookup and one of them add; of failed, given up and helped rollouts nothing is asked."""
    labels = ["lookup\nadd", "lookup", "none"]
    player = Probed({("lookup", 2): 0.5, ("add", 2): 0.4})
    task_generator = SkillCurriculum(told(*labels), PRACTICE, passes=1, after=3, most=1, probes=10)
    group = tried(3, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0)
    for place, outcome in ((0, Outcome.FAILED), (1, Outcome.PRUNED)):
        group.rollouts[place].outcome = outcome
    group.rollouts[2].origin = Origin.GUIDED
    assert shown(task_generator, group, player) == [] and set(player.tried) == {("lookup", 2)}
    assert task_generator.learn([]) == {
        "practised": 1.0,
        "lacking/add": 0.5,
        "lacking/lookup": 1.0,
        "practice_level/lookup": 2.0,
        "practice_before/lookup": 0.5,
    }
    asked = len(task_generator.llm_client.asked)  # type: ignore[union-attr]
    assert shown(task_generator, tried(4, 0.0), player) == [Practice("lookup", 2).task(4)]
    assert shown(task_generator, tried(5, 0.0), player) == [Practice("lookup", 2).task(5)]
    assert len(task_generator.llm_client.asked) == asked == 3, "ranked once"  # type: ignore[union-attr]
    again = SkillCurriculum(told("none"), PRACTICE, passes=1, after=3, most=1, probes=10)
    again.restore(json.loads(json.dumps(task_generator.state())))
    assert again.state() == task_generator.state() and shown(again, tried(6, 0.0), player) == [
        Practice("lookup", 2).task(6)
    ]


def test_both_skills_in_turn_and_practice_is_no_evidence() -> None:
    shares = {("lookup", 2): 0.5, ("add", 2): 0.4}
    player = Probed(shares)
    task_generator = SkillCurriculum(told("lookup\nadd"), PRACTICE, passes=1, after=2, probes=10)
    practised = group_of(Practice("add", 2).task(0), [0.0] * 4, 0, 0)
    assert shown(task_generator, practised, player) == [] and task_generator.state()["known"]["seen"] == [0, 0]
    assert shown(task_generator, tried(1, 0.0), player) == [] and not player.tried, "1 of 2 rollouts"
    first = SkillCurriculum(told("none"), PRACTICE, passes=1, after=2, probes=10)
    first.restore(json.loads(json.dumps(task_generator.state())))
    assert asyncio.run(task_generator(tried(2, 0.0), Probed(shares))) == [] and levels(task_generator) == {}, (
        "it counts once it is observed"
    )
    assert shown(task_generator, tried(2, 0.0), player) == []
    made = [shown(task_generator, tried(number, 0.0), player)[0].source for number in range(3, 7)]
    assert made == ["practice lookup", "practice add"] * 2
    shown(first, tried(2, 1.0), Probed(shares))
    assert first.state()["known"] == {"seen": [1, 1], "lacking": {"add": [1, 0], "lookup": [1, 0]}}


def test_bounds_of_the_task_generator_are_checked() -> None:
    bad: list[dict[str, Any]] = [{"practice": ()}, {"passes": 0}, {"after": 0}, {"most": 0}, {"probes": 0}]
    for fields in (*bad, {"band": (0.6, 0.2)}, {"band": (-0.1, 0.2)}, {"band": (0.5, 1.1)}):
        with pytest.raises(ConfigurationError, match="SkillCurriculum needs practice environments"):
            SkillCurriculum(**{"llm_client": None, "practice": PRACTICE, **fields})


# ---- who speaks


def test_probes_are_left_out_on_purpose() -> None:
    group = make_group([1.0, 0.0, 0.0], failed=[2])
    gate = HasPolicy(("add",))
    assert gate(group).group is None and gate(group).is_meant
    for place in (0, 2):
        (own,) = group.rollouts[place].turns
        group.rollouts[place].turns = (replace(own, sampling=Sampling(policy_name="add")),)
    kept = gate(group).group
    assert kept is not None and kept.rollouts == group.rollouts[:1]
    for policy_names in ((), ("add", "")):
        with pytest.raises(ConfigurationError, match="at least 1 policy name"):
            HasPolicy(policy_names)


def test_the_policy_of_a_env_begins_there_and_nowhere_else() -> None:
    strategy = PolicyPerEnvironment(Independent(), (("practice add", "add"),))

    async def player(start: Start) -> Any:
        return start

    def policy_names(task: Task) -> list[str]:
        starts = [Start("0/0", 1), Start("0/1", 2, policy_name="guest")]
        found: Any = asyncio.run(strategy(Group(0, task, []), starts, player))  # type: ignore[arg-type]
        return [start.policy_name for start in found]

    assert policy_names(Practice("add", 1).task(0)) == ["add", "add"] and policy_names(STORE.task(0)) == ["", "guest"]
    for pairs in ((), (("practice add", ""),)):
        with pytest.raises(ConfigurationError, match="pairs of an environment's name and a policy name"):
            PolicyPerEnvironment(Independent(), pairs)


class Silent(LLMClient):
    async def ask(self, messages: Sequence[Message], sampling: Sampling, key: int) -> str:
        raise LLMClientError("nobody is there")


@pytest.mark.parametrize(
    ("router", "policy_name"),
    [(Canned({"": " add\n"}), "add"), (Canned({"": "none"}), ""), (Canned({"": "add, or store"}), ""), (Silent(), "")],
)
def test_a_router_picks_who_speaks(tmp_path: Path, router: LLMClient, policy_name: str) -> None:
    policy = policy_of(save_folder(tmp_path), Recording(["<call>get red</call>|", "12|"]))
    agent = PolicyRouter(("add", "store"), described(("add", "store")), router)
    rollout = asyncio.run(play(agent, STORE, policy.dialogue(STORE.task(0), Start("0/0", 1))))
    assert [turn.sampling.policy_name for turn in rollout.turns] == [policy_name] * 2 and len(rollout.turn_rewards) == 2
    assert prompt_of(STORE.task(0)) in policy.template.text(rollout.turns[0].prompt) and rollout.turns[1].told


def test_the_first_weights_choose_where_nobody_else_does(tmp_path: Path) -> None:
    task = replace(KEPT, messages=(Message("user", "sum red blue"),))
    engine = Recording(["<think>hm</think>store|", "7|"])
    policy = policy_of(save_folder(tmp_path), engine)
    agent = PolicyRouter(("add", "store"), described(("add", "store")))
    rollout = asyncio.run(play(agent, STORE, policy.dialogue(task, Start("0/0", 1))))
    assert [turn.sampling.policy_name for turn in rollout.turns] == ["", "store"], "who was picked speaks"
    assert rollout.turn_rewards == (0.0, 1.0), "the environment pays the answer and not the choice"
    asked, answered = (policy.template.text(turn.prompt) for turn in rollout.turns)
    assert described(("add", "store")) in asked and "requirements" not in answered and rollout.completion == "7"
    assert engine.limits[0] == 64 and rollout.turns[0].sampling.temperature == 0
    for fields in ({"policy_names": ()}, {"policy_names": ("store", "add")}, {"max_turns": 0}):
        with pytest.raises(ConfigurationError, match="PolicyRouter needs policy names"):
            PolicyRouter(**{"policy_names": ("add", "store"), "described": described(("add", "store")), **fields})  # type: ignore[arg-type]


def test_trace_trains_the_skill_that_is_lacking_and_goes_on(tmp_path: Path) -> None:
    """A random model looks nothing up: that is lacking everywhere, and one adapter alone learns."""
    sizes: dict[str, Any] = {**SIZES, "model": str(save_pocket_like(tmp_path / "model")), "env": "keyvalue:2"}
    run = trace(Setting(**sizes), passes=1, after=8, probes=2, low=0.0, high=1.0)
    run.rewards = (LongerIsBetter(), Earned(weight=0.0))
    rows = acts_and_goes_on(run, tmp_path, {"practised": 0.0, "lacking/lookup": 0.0, "grad_norm/lookup": 0.0})
    assert all("grad_norm/add" not in row and "grad_norm/base" not in row for row in rows)
    with pytest.raises(ConfigurationError, match="those of stores"):
        trace(Setting(env="arithmetic:1"))
