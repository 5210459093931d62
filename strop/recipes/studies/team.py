"""GRPO for a team of planner, critic and actor with separate weights, each trained on its own tokens.

Acts: grad_norm/planner > 0 and grad_norm/critic > 0 and grad_norm/actor > 0
"""

from __future__ import annotations

from dataclasses import replace

from strop.generate.agents.support.episode_loop import HINTED, TOLD
from strop.generate.agents.team import Team
from strop.generate.engines.select_engine import engine_on
from strop.generate.engines.wrappers.per_policy import EnginePerPolicy
from strop.models.loading.model_names import BUNDLED
from strop.recipes.named_parts import named_list
from strop.recipes.setting import Setting
from strop.run import Run
from strop.training.advantages.group_relative import GroupStandard
from strop.training.losses.clip import Clip
from strop.training.trainers.torch import TorchTrainer
from strop.training.trainers.trainer_per_policy import TrainerPerPolicy


def team(
    setting: Setting = Setting(),
    roles: str = "",  # other models as planner or critic: NAME=PART,NAME=PART (named parts); empty: the policy
    lora: int = 0,  # LoRA rank of each role's adapters; 0: full fine-tuning
    clip: float = 0.2,  # PPO clip range: ratios are clipped to [1 - clip, 1 + clip]
) -> Run:
    """GRPO: all roles share the team's reward, and each trains its own model."""
    models = named_list("roles", roles, setting, Team.roles[:-1])
    agent = Team(asks=HINTED if setting.model in BUNDLED else TOLD, models=models)
    own = tuple(role for role in agent.roles if role not in models)
    trainers = tuple(TorchTrainer(learning_rate=setting.learning_rate, device=setting.device, lora=lora) for _ in own)
    run = setting.run(
        "team",
        GroupStandard(),
        (Clip(clip, clip),),
        agent=agent,
        engine=EnginePerPolicy(own, tuple(engine_on(setting.device) for _ in own)),
        trainer=TrainerPerPolicy(own, trainers),
    )
    run.evaluation = replace(run.evaluation, agent=agent)
    return run
