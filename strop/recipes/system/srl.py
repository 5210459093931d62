"""SRL: PPO with a critic on a distributed system, with inference and training in any number of separate processes.

Title: SRL: Scaling Distributed Reinforcement Learning to Over Ten Thousand Cores
Paper: arXiv 2306.16688 (2023)
Claim: Up to 3.7 times as fast as other libraries' designs and up to 5 times as OpenAI Rapid's, on over 15,000 cores.
Reading: Environments run in the trainer's process; inference (`engines`) and training (`ranks`) can be placed
    elsewhere.
Left out: Actors in separate processes with a ring of environments, and a buffer that reuses a sample several times.
Acts: lag > 0 and clipped_share > 0
"""

from __future__ import annotations

from strop.placement.place import place
from strop.recipes.setting import Setting
from strop.run import Run
from strop.training.advantages.gae import Gae
from strop.training.losses.clip import Clip
from strop.training.values.critic import Critic


def srl(
    setting: Setting = Setting(lag=1),
    where: str = "process",  # placement of inference: inline, process or ray
    engines: int = 1,  # number of inference engines
    clip: float = 0.2,  # PPO clip range: ratios are clipped to [1 - clip, 1 + clip]
    minibatches: int = 2,  # optimizer steps per training batch
) -> Run:
    """PPO; samples more than `lag` versions old are never trained on."""
    critic = Critic(device=setting.device)
    run = setting.run("srl", Gae(), (Clip(clip, clip),), values=critic, minibatches=minibatches)
    return place(run, where, engines)
