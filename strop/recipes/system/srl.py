"""PPO with inference in processes of its own, joined to training by streams, each kind in any number.

Title: SRL: Scaling Distributed Reinforcement Learning to Over Ten Thousand Cores
Paper: arXiv 2306.16688 (2023)
Claim: Up to 3.7 times as fast as other libraries' designs and up to 5 times as OpenAI Rapid's, on over 15,000 cores.
Reading: Environments are played beside the trainer; what is placed elsewhere is inference (`engines`) and training
    (`ranks`).
Left out: Actors in processes of their own with a ring of environments, and a buffer that gives a sample out several
    times.
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
    where: str = "process",  # inline, process or ray: where inference computes
    engines: int = 1,  # how many share the work
    clip: float = 0.2,  # PPO clip range: ratios are clipped to [1 - clip, 1 + clip]
    minibatches: int = 2,
) -> Run:
    """Parameters travel by version; a sample more than `lag` versions old is never trained."""
    critic = Critic(device=setting.device)
    run = setting.run("srl", Gae(), (Clip(clip, clip),), values=critic, minibatches=minibatches)
    return place(run, where, engines)
