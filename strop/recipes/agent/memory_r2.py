"""Two roles keep a memory over many sessions; each session is compared with siblings', some from the same memory.

Title: Memory-R2: Fair Credit Assignment for Long-Horizon Memory-Augmented LLM Agents
Paper: arXiv 2605.21768 (2026)
Claim: Credit that compares attempts from the same memory trains agents over 8, then 16, then 32 sessions.
Reading: The release: a session's reward is the score at the end of the conversation (pays=global), global and local
    groups enter one draw with equal weight, and both roles share weights and reward. A rule looks facts up in the
    memory where the paper lets a model answer questions with it; the price of a long memory is the README's. Sessions
    of two facts, 2 and then 3 of them, where the paper has 8, 16 and 32. The clip is of tokens, not of turns. A first
    stage shows what the roles say, since the bundled model has kept no memory before.
Left out: Operations on single entries of a memory, and retrieval from it.
Acts: local_share > 0 and stage > 0 and reward/outcome > 0 with stage=2, groups_per_step=4
"""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

from strop.control.samplers.sequential import Staged
from strop.control.samplers.uniform import Uniform
from strop.filter.rewards.env_check import Checked
from strop.generate.agents.demonstrate_memory import DemonstrateMemory
from strop.generate.agents.extract_and_manage import ExtractAndManage
from strop.generate.strategies.independent import Independent
from strop.generate.strategies.memory.local_reruns import LocalReruns
from strop.recipes.setting import Setting
from strop.recipes.warmup import shown
from strop.run import Run
from strop.training.advantages.session_standard import SessionStandard
from strop.training.losses.clip import Clip
from strop.training.losses.entropy import Entropy
from strop.training.losses.kl import Kl


def memory_r2(
    setting: Setting = Setting(world="sessions:2+sessions:3"),
    pays: Literal["global", "session", "cumulative"] = "global",  # what a session is credited with
    share: float = 0.25,  # of sessions that are tried again from one attempt's memory
    count: int = 4,  # attempts at each of those
    stage: int = 20,  # versions before conversations become longer: the worlds of the setting, one after the other
    warmup: int = 20,  # steps in which both roles are shown what to say
    kl: float = 0.01,  # weight of the KL to the first weights
    entropy: float = 0.001,  # weight of an entropy bonus
    clip: float = 0.2,  # a token whose ratio left 1 by more gets no gradient
) -> Run:
    """LoGo-GRPO: two epochs on global and local groups together."""
    agent, taught = ExtractAndManage(), shown(setting, "memory_r2", warmup)
    if taught is not None:
        taught.agent = DemonstrateMemory()
    run = setting.run(
        "memory_r2",
        SessionStandard(pays),
        (Clip(clip, clip), Kl(weight=kl), Entropy(entropy)),
        agent=agent,
        strategy=LocalReruns(Independent(), share, count),
        epochs=2,
        warmup=taught,
    )
    stages = tuple(Uniform((world,)) for world in run.worlds)
    run.sampler = Staged(stages, (stage,) * (len(stages) - 1))
    run.evaluation = replace(run.evaluation, agent=agent, rewards=(Checked(run.worlds),))
    return run
