"""Concise reasoning (2504.05185): a short second phase of PPO on a few tasks that are sometimes solved."""

from __future__ import annotations

from strop.control.samplers.few import Few
from strop.filter.gates.solvable import Solvable
from strop.filter.rewards.graded_answer import GradedAnswer
from strop.recipes.setting import Setting
from strop.run import Run
from strop.train.advantages.gae import Gae
from strop.train.losses.clip import Clip
from strop.train.values.critic import Critic


def concise_reasoning(
    setting: Setting = Setting(world="countdown:3"), tasks: int = 8, trace: float = 0.95, clip: float = 0.2
) -> Run:
    """No term for length: a trace below 1 makes right answers better the shorter, wrong ones the longer they are."""
    advantage, critic = Gae(trace=trace, whiten=False), Critic(device=setting.device)
    run = setting.run("concise_reasoning", advantage, (Clip(clip, clip),), values=critic, gates=(Solvable(),))
    run.rewards, run.sampler = (GradedAnswer(),), Few(run.worlds, tasks)
    return run
