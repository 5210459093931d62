"""PAR (2502.18770), a learned reward model's scores as the probability of beating the first policy, against the raw
scores.

The reward model is the pocket model after a short training on pairs of right and wrong completions to the same
environment; it is
made when it is first needed and kept in runs/judges. The learning rate is high enough that the policy leaves what the
reward model has seen within the budget: that is what the bound is for. A first setting (a judge of 100 steps, one
reference, a learning rate of 2e-4) ended at 0.405 against 0.228 of the raw scores (+0.177, interval -0.063 to +0.418),
both below the first policy: a judge that weak leads anybody away. In this one the mean over the run is 0.254 above the
raw scores, and 0.051 (-0.033 to +0.135) above a bounded coin: the bound keeps what is there, the judge adds little.
Papers: par
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from strop.effects import Experiment
from strop.effects.prior_runs import earlier_model
from strop.filter.rewards.controls import Coin
from strop.recipes.reward.axiomatic_preference import axiomatic_preference
from strop.recipes.reward.par.recipe import par
from strop.recipes.reward.par.reward import Preferred
from strop.recipes.setting import Setting
from strop.run import Run

ENV = "arithmetic:2"
JUDGE_STEPS = 300
JUDGES = Path("runs/judges")


def judge(device: str) -> str:
    """A folder with the reward model."""

    def run() -> Run:
        sizes = {"steps": JUDGE_STEPS, "checkpoint_every": JUDGE_STEPS, "heldout_every": 0, "heldout_tasks": 1}
        asked = Setting(env=ENV, seed=1000, device=device, group_size=2, groups_per_step=48, **sizes)
        shares = {"useful": 1.0, "relevant": 0.0, "grounded": 0.0, "evidence": 0.0, "merged": 0.0}
        return axiomatic_preference(replace(asked, learning_rate=1e-3), **shares)

    return earlier_model(JUDGES / f"arithmetic2-{JUDGE_STEPS}", run)


def treatment(setting: Setting) -> Run:
    """PPO on the probability of beating four rollouts of the first policy."""
    sized = replace(setting, env=ENV, learning_rate=1e-4, heldout_tasks=128, heldout_every=5)
    return par(sized, judge=judge(setting.device), references=4)


def control(setting: Setting) -> Run:
    """The same with the reward model's scores as they are."""
    run = treatment(setting)
    shaped, *measured = run.rewards
    assert isinstance(shaped, Preferred)
    return replace(run, rewards=(shaped.inner, *measured))


def negative(setting: Setting) -> Run:
    """The same bound around a coin's scores."""
    run = treatment(setting)
    return replace(run, rewards=(Preferred(Coin()), *run.rewards[1:]))


experiment = Experiment(
    key="par",
    claim="At equal generated tokens, a learned reward model's scores as the probability of beating the first policy "
    "lead "
    "to a higher mean held-out accuracy than the scores themselves, which the policy over-optimises.",
    treatment=treatment,
    control=control,
    negative=negative,
    tokens=60_000,
    metric="heldout_area",
)
