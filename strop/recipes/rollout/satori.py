"""PPO from the prompt and from earlier attempts that the policy is asked to look over, right ones and wrong ones.

Title: Satori: Reinforcement Learning with Chain-of-Action-Thought Enhances LLM Reasoning via Autoregressive Search
Paper: arXiv 2502.02508 (2025)
Claim: A 7B model that reflects and explores by itself leads those of its size on mathematics, and carries over.
Reading: First a little supervised training on the marker, on demonstrations in whose middle it stands; then PPO with a
    bonus of 0.5 for restarts, no KL, temperature 0.6. Prompts, right and wrong beginnings are equally likely where all
    are known. The release's wrong and right beginnings are made before the run; here they are the run's own, so tasks
    have to come back: a pool of them, from step 9 on with 8 tasks a step. Two steps are dropped at most; the release's
    number was not found. Optimizer steps per draw are not known: two. The marker is one character, which the bundled
    model learns in a few steps.
Left out: The outcome reward model, whose mark between 0 and 1 is added. The markers to continue and to explore. A
    second round on the base model after the policy was distilled into it.
Acts: share/branched > 0 and reward_of/branched != 0 with pool=4, warmup_steps=2
"""

from __future__ import annotations

from dataclasses import replace

from strop.control.samplers.few import Few
from strop.filter.rewards.restart_bonus import RestartBonus
from strop.generate.agents.demonstrate_reflection import DemonstrateReflection
from strop.generate.strategies.restarts import Restarts
from strop.recipes.setting import Setting
from strop.recipes.warmup import shown
from strop.run import Run
from strop.training.advantages.gae import Gae
from strop.training.losses.clip import Clip
from strop.training.values.critic import Critic


def satori(
    setting: Setting = Setting(world="arithmetic:6", temperature=0.6),
    pool: int = 64,  # tasks of each world, which come back
    dropped: int = 2,  # steps of an earlier reply that are left out at most
    reflect: str = "?",  # the marker: said where an earlier reply is cut
    bonus: float = 0.5,  # for a wrong beginning that was mended; a right one that was spoiled costs as much
    warmup_steps: int = 20,  # of supervised training first
) -> Run:
    """An attempt may begin with an earlier one's first steps and a marker, on which it is not trained."""
    run = setting.run(
        "satori",
        Gae(trace=0.95),
        (Clip(0.2, 0.2),),
        values=Critic(device=setting.device),
        strategy=Restarts(reflect, dropped),
        minibatches=2,
    )
    run.sampler = Few(run.worlds, pool)
    (judged,) = run.rewards
    run.rewards = (RestartBonus(judged, bonus), replace(judged, weight=0.0))  # type: ignore[type-var]
    if (taught := shown(setting, "satori", warmup_steps)) is not None:
        run.warmup = replace(taught, agent=DemonstrateReflection(taught.agent, reflect))
    return run
