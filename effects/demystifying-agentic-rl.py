"""Failures that lose less the more tools they used (2510.11701), against failures that all lose the same.

The bundled model has seen such conversations, so nothing is shown in any arm. It fails mostly for a search that it left
out, or for an answer that it spelled wrong. On keyvalue:5 it was -0.007 (-0.022 to +0.008) over 200,000 tokens, when
all arms had only begun to learn; on search:3, where the searches themselves were wrong, failures called until the end
for what that saved, and it was -0.361 (-0.663 to -0.060).
Papers: demystifying-agentic-rl
"""

from __future__ import annotations

from dataclasses import replace

from strop.effects import Experiment
from strop.recipes.agent.demystifying_agentic_rl import demystifying_agentic_rl
from strop.recipes.setting import Setting
from strop.run import Run


def _run(setting: Setting, each: float = 0.1, shifted: bool = False) -> Run:
    sized = replace(setting, env="search:2", learning_rate=3e-5, heldout_tasks=256, heldout_every=2)
    sized = replace(sized, groups_per_step=4, group_size=16)
    return demystifying_agentic_rl(sized, shown=0, each=each, shifted=shifted)


def treatment(setting: Setting) -> Run:
    """Each round with a tool takes a tenth off the price of a failure."""
    return _run(setting)


def control(setting: Setting) -> Run:
    """A failure costs 1."""
    return _run(setting, each=0.0)


def negative(setting: Setting) -> Run:
    """A failure is softened by the rounds of the rollout beside it."""
    return _run(setting, shifted=True)


experiment = Experiment(
    key="demystifying-agentic-rl",
    claim="Where most rollouts fail for a call that they left out, failures that lose less with each call have a higher"
    " mean held-out accuracy over the run than failures that all cost the same, at equal sampled tokens.",
    treatment=treatment,
    control=control,
    negative=negative,
    tokens=80_000,
    metric="heldout_area",
)
