"""GRPO with a baseline per role, where one policy plays solver and examiner in a debate.

Acts: advantage_mean != 0
"""

from __future__ import annotations

from dataclasses import replace

from strop.generate.agents.debate import Debate
from strop.generate.agents.support.episode_loop import HINTED, TOLD
from strop.models.loading.model_names import BUNDLED
from strop.recipes.named_parts import named_list
from strop.recipes.setting import Setting
from strop.run import Run
from strop.training.advantages.per_turn import PerRole
from strop.training.losses.clip import Clip


def per_role(
    setting: Setting = Setting(),
    roles: str = "",  # another model as the examiner: examiner=PART (a named part); empty: the policy
    rounds: int = 2,  # rounds of feedback from the examiner to the solver
    clip: float = 0.2,  # PPO clip range: ratios are clipped to [1 - clip, 1 + clip]
) -> Run:
    """The baseline of a turn comes from the sibling turns of the same role."""
    models = named_list("roles", roles, setting, Debate.policy_names[1:])
    agent = Debate(rounds, HINTED if setting.model in BUNDLED else TOLD, models=models)
    run = setting.run("per_role", PerRole(), (Clip(clip, clip),), agent=agent)
    run.evaluation = replace(run.evaluation, agent=agent)
    return run
