"""PTA-GRPO's plans: what one is, who works it out again, what is paid for it and how its tokens are credited."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from strop.control.budgets.fixed import Fixed
from strop.control.samplers.uniform import Uniform
from strop.environments.bundled.arithmetic import Arithmetic
from strop.errors import ConfigurationError
from strop.filter.rewards.from_environment import Earned
from strop.generate.agents.demonstrator import Demonstrate
from strop.generate.engines.scripted import Scripted
from strop.pipeline import train
from strop.recipes import build, recipe_named
from strop.recipes.guide.pta_grpo.recipe import DemonstratePlan, InParts, Plans, plan_of, planned
from strop.recipes.guide.pta_grpo.reward import PlanQuality
from strop.training.advantages.along_tree import AlongTree
from strop.training.advantages.group_relative import GroupStandard
from strop.types import Group, Message, Origin
from tests.building import make_group
from tests.clock import run_virtually
from tests.recipes.guide.test_ghpo import terms
from tests.test_pipeline import make_run, opened
from tests.tiny_models import save_pocket_like

ENV = Arithmetic(3)


def test_a_plan_is_the_working_without_results() -> None:
    assert plan_of("<think>47+12=59 59+30=89</think>89") == "47+12 ?+30"
    assert plan_of("<think>rot(abc)=bca rev(bca)=acb</think>acb") == "rot(abc) rev(?)"
    assert plan_of("<think>2*3=6 16+6=22</think>16+2*3") == "2*3 16+?", "a result is replaced as a whole number only"
    assert planned("<think>1+1=2</think>2") == "<plan>1+1</plan><think>1+1=2</think>2"
    assert plan_of("89") == "" and planned("89") == "89"


def saying(*completions: str) -> Group:
    group = make_group([0.0] * len(completions))
    for rollout, text in zip(group.rollouts, completions, strict=True):
        rollout.turns = (replace(rollout.turns[0], message=Message("assistant", text)),)
    return group


def test_the_form_of_a_completion() -> None:
    right = ["<plan>a</plan><think>b</think>c", " <plan></plan>\n<think></think> c "]
    wrong = [
        "<think>b</think><plan>a</plan>c",
        "<think>b</think>c",
        "<plan>a</plan><think>b</think>",
        "<plan>a</plan><think>b",
        "<plan>a<think>b</think>c",
        "so <plan>a</plan><think>b</think>c",
        "<plan>a</plan><plan>a</plan><think>b</think>c",
    ]
    assert InParts()(saying(*right, *wrong)) == [1.0] * 2 + [0.0] * 7
    assert InParts(("think",))(saying("<think>b</think>c")) == [1.0]


def test_a_plan_is_paid_for_all_of_its_rollouts() -> None:
    """Plan 0 has rollouts paid 1, 0 and 1, plan 1 has 0 and 0, and the last one is alone."""
    group = make_group([0.0] * 6, turn_rewards=[(1.0,), (0.0,), (0.0,), (1.0,), (0.0,), (1.0,)])
    first, second = group.rollouts[0].id, group.rollouts[1].id
    for place, parent in ((2, first), (3, first), (4, second)):
        group.rollouts[place].parent = parent
    assert PlanQuality(Earned())(group) == pytest.approx([2 / 3, 0.0, 2 / 3, 2 / 3, 0.0, 1.0])


def completion(prompt: str, key: int) -> str:
    """Behind a plan a thought, right or wrong by chance; without one a plan first, but not for odd sums."""
    begun = prompt.rpartition("<|assistant|>")[2]
    asked = terms(prompt.partition("<|assistant|>")[0])
    thought = f"<think>{asked[0]}+{asked[1]}</think>{sum(asked) if key % 2 else 0}"
    if begun or sum(asked) % 2:
        return thought
    return f"<plan>{key % 7}</plan>{thought}"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[Group], list[dict[str, float]], int]:
    folder, strategy = tmp_path_factory.mktemp("plans"), Plans(3)
    run = make_run(
        steps=2,
        envs=(ENV,),
        sampler=Uniform((ENV,)),
        engine=Scripted(completion),
        budget=Fixed(2),
        strategy=strategy,
        rewards=(Earned(), PlanQuality(Earned()), InParts(weight=0.1)),
    )
    run.advantage = AlongTree(GroupStandard(), "mean")
    with opened(run, save_pocket_like(folder / "model"), folder / "ledger.db") as (flow, recorder):
        strategy.meet(flow.policy)
        run_virtually(train(flow))
        assert flow.ledger.violations() == []
        groups = [group for step in (1, 2) for group in flow.ledger.trained_groups(step)]
        ((sampled,),) = flow.ledger._rows("SELECT SUM(tokens) FROM rollouts")
    return groups, recorder.rows, int(sampled)


def test_each_plan_is_worked_out_three_times(made: tuple[list[Group], list[dict[str, float]], int]) -> None:
    groups, rows, sampled = made
    sizes = set()
    for group in groups:
        roots = [each for each in group.rollouts if not each.parent]
        assert len(roots) == 2
        for root in roots:
            others = [each for each in group.rollouts if each.parent == root.id]
            plan = root.completion.partition("</plan>")[0] + "</plan>"
            assert len(others) == (2 if "<plan>" in root.completion else 0)
            for each in others:
                assert each.origin is Origin.BRANCHED and each.completion.startswith(plan + "<think>")
                (turn,) = each.turns
                assert turn.num_prefix == len("<plan>") + 1 + len("</plan>"), (
                    "a token each: nothing but the plan is given"
                )
            kin = [root, *others]
            right = float(np.mean([each.rewards["outcome"] for each in kin]))
            assert [each.rewards["plan_quality"] for each in kin] == pytest.approx([right] * len(kin))
            for each in kin:
                form = 0.1 * ("<plan>" in root.completion)
                assert each.reward == pytest.approx(each.rewards["outcome"] + each.rewards["plan_quality"] + form)
        sizes.add(len(group.rollouts))
    assert sizes == {2, 6}
    assert rows[-1]["tokens_generated"] == sampled and 0 < rows[0]["shared_token_share"] < 1


def test_a_plan_has_the_mean_credit_of_its_rollouts(made: tuple[list[Group], list[dict[str, float]], int]) -> None:
    group = next(group for group in made[0] if len(group.rollouts) == 6 and np.ptp(group.rewards) > 0)
    AlongTree(GroupStandard(), "mean")([group])
    mean, spread = group.rewards.mean(), group.rewards.std(ddof=1) + 1e-6
    for root in (each for each in group.rollouts if not each.parent):
        kin = [root, *(each for each in group.rollouts if each.parent == root.id)]
        own = [(each.reward - mean) / spread for each in kin]
        size = kin[1].turns[0].num_prefix
        assert root.advantages is not None and len(root.advantages) == root.num_tokens
        assert root.advantages[:size].tolist() == pytest.approx([float(np.mean(own))] * size, abs=1e-5)
        assert root.advantages[size:].tolist() == pytest.approx([own[0]] * (root.num_tokens - size), abs=1e-5)
        for each, advantage in zip(kin[1:], own[1:], strict=True):
            assert each.advantages is not None
            assert each.advantages.tolist() == pytest.approx([advantage] * each.num_tokens, abs=1e-5)


def test_the_warm_up_shows_plans(tmp_path: Path) -> None:
    run = make_run(
        steps=1,
        envs=(ENV,),
        sampler=Uniform((ENV,)),
        engine=Scripted(completion),
        agent=DemonstratePlan(Demonstrate()),
    )
    with opened(run, save_pocket_like(tmp_path / "model"), tmp_path / "ledger.db") as (flow, recorder):
        run_virtually(train(flow))
        rollouts = [each for group in flow.ledger.trained_groups(1) for each in group.rollouts]
    assert all(each.completion == planned(ENV.solution(each.task)) and each.reward == 1.0 for each in rollouts)
    assert recorder.rows[-1]["tokens_generated"] == 0
    before = build(recipe_named("pta_grpo"), {}).warmup
    assert before is not None and isinstance(before.agent, DemonstratePlan) and before.steps == 40
    assert build(recipe_named("pta_grpo"), {"warmup_steps": 0}).warmup is None


def test_refuses_what_cannot_work() -> None:
    with pytest.raises(ConfigurationError, match="Plans needs chains >= 2"):
        Plans(1)
    with pytest.raises(ConfigurationError, match="call meet"):
        Plans()._end(make_group([0.0]).rollouts[0])
    with pytest.raises(ConfigurationError, match="InParts needs at least one tag"):
        InParts(())
