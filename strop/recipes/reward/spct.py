"""SPCT: GRPO for a generative judge that writes principles, critiques and scores; rewarded by its ranking.

Title: Inference-Time Scaling for Generalist Reward Modeling
Paper: arXiv 2504.02495 (2025)
Claim: The judge improves with more sampled answers: 32 of a 27B judge match a model of 671B.
Reading: Reward 1 if the best completion's score is strictly the highest, else -1, and nothing for layout; groups of 4,
    a KL penalty of 0.08. Before RL, as in the paper, imitation of the right ones of three answers, on questions that
    are not always answered rightly; and before that a short supervised warm-up, since the bundled model has never
    judged. Completions to compare are worked solutions and mistakes that rules make. `spct_votes` samples such a judge
    several times.
Left out: Answers with a hint about which completion is best in the second stage.
Acts: reward/graded_answer > -1 and warmup/kept_share < 1 with warmup_steps=3, rejected=1
"""

from __future__ import annotations

from dataclasses import replace

from strop.environments.judging.listwise import Ranking
from strop.filter.gates.successes_only import Successes
from strop.filter.gates.zero_variance import ZeroVariance
from strop.filter.rewards.from_environment import Earned
from strop.filter.rewards.graded_answer import GradedAnswer
from strop.recipes.environment_specs import wrap_envs
from strop.recipes.setting import Setting
from strop.recipes.warmup import BundledOnly, shown
from strop.run import Run
from strop.training.advantages.constant import Constant
from strop.training.advantages.group_relative import GroupStandard
from strop.training.losses.clip import Clip
from strop.training.losses.kl import Kl
from strop.training.losses.likelihood import Likelihood

_SAMPLES = 3  # answers per question, of which right ones are imitated


def spct(
    setting: Setting = Setting(env="arithmetic:3", group_size=4),
    completions: int = 2,  # completions that a question shows
    warmup_steps: int = BundledOnly(12),  # supervised warm-up steps before RL
    rejected: int = 4,  # rejection-sampling steps (imitation of right answers) before RL
    kl: float = 0.08,  # weight of the KL penalty to the reference policy
) -> Run:
    """Rejection sampling, then RL with a rule-based reward; only the scores count, not the critique's text."""
    run = setting.run("spct", GroupStandard(), (Clip(0.2, 0.2), Kl("k3", kl)))
    run.warmup = shown(setting, "spct", warmup_steps)
    if rejected:
        cold = replace(setting, steps=rejected, group_size=_SAMPLES, heldout_every=0)
        start = cold.run("spct", Constant(), (Likelihood(),), gates=(ZeroVariance(), Successes()))
        run.warmup, start.warmup = start, run.warmup
    wrap_envs(run, lambda env: (Ranking(env, completions),))
    run.rewards = (GradedAnswer(Earned(), right=1.0, wrong=-1.0, missing=-1.0), Earned(weight=0.0))
    return run
