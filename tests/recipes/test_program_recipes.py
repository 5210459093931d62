"""Recipes that run programs, as what they become with the model that another run of theirs made; parts by hand."""

from __future__ import annotations

import pytest

from strop.environments.code_execution import Trials
from strop.filter.rewards.line_prm import JudgedLines
from strop.filter.rewards.reward_model import Scored
from strop.filter.rewards.unit_tests import PassedTests
from strop.generate.engines.wrappers.policy_and_reference import WithReference
from strop.generate.reward_model import RewardModel
from strop.recipes import recipe_named
from strop.recipes.reward.acecoder import ProgramPairs, acecoder
from strop.recipes.reward.critique_coder import critique_coder
from strop.recipes.reward.hardtests import hardtests
from strop.recipes.reward.prlcoder import prlcoder
from strop.recipes.reward.prm_code import InitializedCritic, prm_code
from strop.recipes.reward.rltf import rltf
from strop.recipes.setting import Setting
from strop.run import Run
from strop.training.advantages.constant import Constant
from strop.training.advantages.gae import Gae
from strop.training.losses.clip import Clip
from strop.training.losses.kl import Kl
from strop.training.losses.preferences.bradley_terry import BradleyTerry
from strop.training.reductions.means import SequenceMean
from strop.training.values.critic import Critic
from strop.training.values.line_scores import LineScores

CUDA = Setting(env="programs:2", model="pocket", device="cuda", isolation="process")
TESTS = PassedTests(trials=Trials("process"))


def test_many_programs_may_wait_for_the_sandbox() -> None:
    """A minute for all of a group, where a reward has ten seconds otherwise."""
    made = [recipe() for recipe in (rltf, acecoder, hardtests, prlcoder, prm_code, critique_coder)]
    made += [prlcoder(judge="J"), prm_code(judge="J")]
    assert {run.reward_seconds for run in made} == {60.0} and recipe_named("grpo")().reward_seconds == 10.0


def parts(run: Run) -> tuple[object, ...]:
    return run.rewards, run.values, run.advantage, run.losses, run.minibatches


def test_judged_lines_pay_beside_the_tests() -> None:
    lines = LineScores("J", "pocket", "cuda")
    found = prm_code(CUDA, judge="J", weight=0.5, clip=0.1)
    critic = InitializedCritic(device="cuda", folder="J")
    assert parts(found) == ((TESTS, JudgedLines(lines, 0.5)), critic, Gae(), (Clip(0.1, 0.1),), 2)
    found = prlcoder(CUDA, judge="J", weight=0.5, clip=0.1, kl=0.3)
    losses = (Clip(0.1, 0.1), Kl("k2", 0.3))
    assert parts(found) == ((TESTS, JudgedLines(lines, 0.5)), Critic(device="cuda"), Gae(), losses, 2)


def test_a_reward_model_pays_in_place_of_the_tests_and_is_made_of_pairs() -> None:
    tests, judged = acecoder(CUDA, reward_model="M").rewards
    assert tests == PassedTests(trials=Trials("process"), weight=0.0) and judged == Scored(RewardModel("M", "cuda"))
    (share,) = acecoder(CUDA, is_binary=False).rewards
    assert share == PassedTests("share", Trials("process"))
    run = acecoder(CUDA, learns_pairs=True)
    assert isinstance(run.strategy, ProgramPairs) and run.strategy.trials == Trials("process")
    assert isinstance(run.engine, WithReference) and run.reduction == SequenceMean()
    assert run.advantage == Constant() and run.losses == (BradleyTerry(),)


@pytest.mark.parametrize("recipe", [acecoder, prm_code, prlcoder])
def test_programs_are_shown_first(recipe: object) -> None:
    assert callable(recipe) and recipe(warmup_steps=0).warmup is None and recipe(warmup_steps=7).warmup.steps == 7
