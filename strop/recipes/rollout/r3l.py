"""After an attempt a reflection, then a second try from where it went wrong, trained without what helped it.

Title: R^3L: Reflect-then-Retry Reinforcement Learning with Language-Guided Exploration, Pivotal Credit, and Positive
    Amplification
Paper: arXiv 2601.03715 (2026)
Claim: Relative improvements of 5 to 52 % over baselines on agentic and reasoning tasks.
Reading: Half of group_size are first attempts. A reflection says in JSON whether one is good, and else from which turn
    to try again and what to do differently; one that is not valid, or points behind the end, is no reflection. What
    both attempts share is not trained, in neither. Credit is the release's: 1 for every success, three times what
    another is above the mean, and what is below it as it is; the paper multiplies successes, too (success=0). No ratio
    and no clip, the mean over tokens after the pivot, divided by 1 + 1, one optimizer step per draw. Where a retry
    helped, itself behind its guidance and the reflection are trained as groups of one. The bundled model writes no
    JSON: its reflections are canned, that what earned nothing is wrong, which it has learned to take to heart; with
    reflects=itself a model reflects by itself, and with reflects=http://HOST:PORT/v1#MODEL another one does.
Left out: A reflection that rightly finds an attempt good is not trained; random replay of earlier attempts.
Acts: share/guided > 0 and share/replayed > 0 and raised_share > 0
"""

from __future__ import annotations

from strop.filter.rewards.from_strategy import Noted
from strop.generate.llm_clients.canned import Canned
from strop.generate.reflections import REWARD
from strop.generate.strategies.reflect_retry import ReflectRetry
from strop.recipes.llm_clients import parse_adviser
from strop.recipes.setting import Setting
from strop.run import Run
from strop.training.advantages.amplified import Amplified
from strop.training.losses.reinforce import Reinforce
from strop.training.reductions.after_pivot import AfterPivot

_CANNED = {
    f"{REWARD} 1": '{"outcome": "success"}',
    REWARD: '{"outcome": "failure", "retry_from_step": 0, "guidance": "wrong, try again"}',
}


def r3l(
    setting: Setting = Setting(world="arithmetic:6"),
    reflects: str = "canned",  # or itself, or http://HOST:PORT/v1#MODEL
    strips: bool = True,  # whether guidance is taken out of what a retry reads, before it is trained
    factor: float = 3.0,  # of credit above the mean
    success: float = 1.0,  # credit of a full success; 0: times the factor, as any other
) -> Run:
    """A group is group_size / 2 first attempts, and for each that its reflection finds wanting a second one."""
    adviser = Canned(_CANNED) if reflects == "canned" else parse_adviser(reflects)
    run = setting.run(
        "r3l",
        Amplified(factor, success),
        (Reinforce(weight=0.5),),
        strategy=ReflectRetry(adviser, strips),
        reduction=AfterPivot(),
    )
    (judged,) = run.rewards
    run.rewards = (Noted(judged),)
    return run
