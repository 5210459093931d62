"""PPO from states that a guide reaches: it begins an attempt and the policy goes on, or the policy begins and it ends.

Title: Learning to Generate Better Than Your LLM
Paper: arXiv 2306.11816 (2023)
Claim: Better than PPO on text generation, and better than the guide, by rolling in or out with it.
Reading: rule is ppo++ (the guide rolls in), aggrevated (it rolls out), lols or d2lols, which mix both. What a guide
    writes is a state or a return, never trained: under ppo++ it is given to the policy; under aggrevated the policy's
    beginning earns what the whole did, and the critic learns from the guide's end, too, whose tokens are among those
    over which advantages are whitened. The guide is the model that training began with, as in the paper, or any other
    of the same vocabulary. Cuts are drawn within `length` tokens before anything is written.
Left out: KL in the reward; it is a loss here.
Acts: share/branched > 0
"""

from __future__ import annotations

from strop.filter.rewards.from_strategy import Noted
from strop.generate.engines.cpu.torch_engine import TorchEngine
from strop.generate.engines.wrappers.policy_and_reference import WithReference
from strop.generate.strategies.rolled_with_guide import RolledWithGuide
from strop.recipes.setting import Setting
from strop.run import Run
from strop.training.advantages.gae import Gae
from strop.training.losses.clip import Clip
from strop.training.losses.kl import Kl
from strop.training.reductions.own_token_mean import OwnTokenMean
from strop.training.values.critic import Critic


def rlgf(
    setting: Setting = Setting(),
    guide: str = "",  # folder of another model; empty: the one that training begins with
    rule: str = "ppo++",  # aggrevated, lols, d2lols
    mixed: float = 0.8,  # chance of an attempt to be shared with the guide
    length: int = 24,  # tokens within which an attempt is cut
    share: float = 0.8,  # of versions in which the guide rolls in, under lols
    switch: int = 20,  # the first version in which the guide rolls in, under d2lols
) -> Run:
    """Some attempts are shared with a guide, whose part is not trained."""
    run = setting.run(
        "rlgf",
        Gae(),
        (Clip(0.2, 0.2), Kl(weight=0.001)),
        engine=WithReference(TorchEngine(device=setting.device), TorchEngine(device=setting.device), guide),
        strategy=RolledWithGuide(setting.seed, rule, mixed, length, share, switch),
        reduction=OwnTokenMean(),
        values=Critic(device=setting.device),
        minibatches=2,
    )
    (judged,) = run.rewards
    run.rewards = (Noted(judged),)
    return run
