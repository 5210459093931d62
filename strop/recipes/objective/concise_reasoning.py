"""A short second phase of PPO on a few tasks that are sometimes solved makes answers shorter.

Title: Concise Reasoning via Reinforcement Learning
Paper: arXiv 2504.05185 (2025)
Claim: Answers become 37 to 59 % shorter at nearly the same accuracy, from 8 tasks.
Reading: There is no term for length: a trace below 1 makes right answers better the shorter, wrong ones the longer
    they are. A task counts as solvable from its first success on; until then its groups are dropped. Start it from
    the model of a first phase.
Acts: dropped_groups > 0 and credit_within > 0 with world=arithmetic:5
"""

from __future__ import annotations

from strop.control.samplers.few import Few
from strop.filter.gates.solvable import Solvable
from strop.filter.rewards.graded_answer import GradedAnswer
from strop.recipes.setting import Setting
from strop.run import Run
from strop.training.advantages.gae import Gae
from strop.training.losses.clip import Clip
from strop.training.values.critic import Critic


def concise_reasoning(
    setting: Setting = Setting(world="countdown:3"),
    tasks: int = 8,  # of each world, over and over
    trace: float = 0.95,  # lambda of generalized advantage estimation
    clip: float = 0.2,  # a token whose ratio left 1 by more gets no gradient
) -> Run:
    """No term for length: a trace below 1 makes right answers better the shorter, wrong ones the longer they are."""
    advantage, critic = Gae(trace=trace, whiten=False), Critic(device=setting.device)
    run = setting.run("concise_reasoning", advantage, (Clip(clip, clip),), values=critic, gates=(Solvable(),))
    run.rewards, run.sampler = (GradedAnswer(run.rewards[0]),), Few(run.worlds, tasks)
    return run
