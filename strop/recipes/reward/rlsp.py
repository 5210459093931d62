"""Imitate worked search, then PPO on the outcome and, apart from it, on how much was searched.

Title: On the Emergence of Thinking in LLMs I: Searching for the Right Intuition
Paper: arXiv 2502.06773 (2025)
Claim: 23 % on MATH-500 (Llama-3.1-8B-Instruct) and 10 % on AIME 2024 (Qwen2.5-32B-Instruct) over the model it begins
    with; backtracking and verification appear by themselves.
Reading: As released: 1 for a right answer, 0 for a wrong one, -0.5 for none. form=length adds -price / n for a working
    of n tokens (a fourth of its characters); the release's price of 1000 is for working of thousands of tokens, here 2
    is for some ten. form=judge is 0.8 of the outcome and 0.2 of a judge's grade of effort; a rule that counts different
    calculations stands for the model, and a judge that fails gives no reward where the release gives 0.5. The penalty
    of 0.05 to the reference is a loss here; trace 0.95. Demonstrations are the worlds' own working with backtracking
    and checks put between its steps.
Acts: reward/search_effort < 0 and credit_within > 0 and warmup/nll > 0 with taught=2
"""

from __future__ import annotations

from dataclasses import replace

from strop.errors import ConfigurationError, nearest
from strop.filter.rewards.graded_answer import GradedAnswer
from strop.filter.rewards.judged.judged_effort import JudgedEffort
from strop.filter.rewards.search_effort import SearchEffort
from strop.generate.agents.behavior_injection import Injected
from strop.generate.agents.demonstrator import Demonstrate
from strop.recipes.environment_metric import measured
from strop.recipes.llm_clients import judge_seconds, parse_judge
from strop.recipes.setting import Setting
from strop.recipes.warmup import shown
from strop.roles import Reward
from strop.run import Run
from strop.training.advantages.gae import Gae
from strop.training.losses.clip import Clip
from strop.training.losses.kl import Kl
from strop.training.values.critic import Critic

_FORMS = ("length", "judge")
_RULE = "strop.standins.judges.effort:effort"


def rlsp(
    setting: Setting = Setting(max_tokens=96),
    form: str = "length",  # length or judge: how search is rewarded
    price: float = 2.0,  # form=length: of a working of one token; 1000 in the release
    judge: str = "rules",  # form=judge: who grades effort: rules, itself, a folder, or http://HOST/v1#MODEL
    share: float = 0.2,  # form=judge: of the judge's grade in the reward
    taught: int = 10,  # steps of supervised training first
    behaviours: float = 0.3,  # how likely backtracking, or a check, comes before a step that is shown
    kl: float = 0.05,  # weight of the penalty to the reference
) -> Run:
    """The outcome and the search are rewards of their own, so that one can be had without the other."""
    if form not in _FORMS:
        raise ConfigurationError(f"rlsp rewards search in no form {form!r}: {nearest(form, _FORMS)}")
    run = setting.run(
        "rlsp", Gae(), (Clip(0.2, 0.2), Kl("k2", kl)), values=Critic(device=setting.device), minibatches=2
    )
    (outcome,) = run.rewards
    truth = measured(run.worlds)
    weight = 1.0 if form == "length" else 1 - share
    graded = GradedAnswer(outcome, right=1.0, wrong=0.0, missing=-0.5, weight=weight)
    search: Reward = SearchEffort(price) if form == "length" else JudgedEffort(parse_judge(judge, _RULE), share)
    run.rewards, run.reward_seconds = (graded, search, truth), judge_seconds(judge)
    if (warmup := shown(setting, "rlsp", taught)) is not None:
        run.warmup = replace(warmup, agent=Injected(Demonstrate(least=1.0), behaviours, behaviours, setting.seed))
    return run
