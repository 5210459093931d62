"""A growing part of the solution in the prompt, only where every attempt failed; trained as it was read.

Title: GHPO: Adaptive Guidance for Stable and Efficient LLM Reinforcement Learning
Paper: arXiv 2507.10628 (2025)
Claim: About 5 % better on average than GRPO and curricula, over six mathematics benchmarks.
Reading: A wave of which no attempt was right is replaced by one that reads the first 25 % of the solution's characters,
    then 50 %, then 75 %; the last wave is trained on whatever came of it. Only being right decides, not the form. The
    prompt of each wave is kept; the release trains groups that were solved at an earlier rung behind another prompt
    than they were sampled with. One optimizer step per draw and the mean over tokens, as released. The solution is the
    world's own working, and "hint:" the sentence before it. A wave that was cut off as a whole at the token limit is
    not followed by another one: that says nothing about how hard the task is.
Left out: The cold start, a fixed hint of 50 % in every prompt of the first steps (the release has it switched off).
Acts: hint_share > 0 and share/guided > 0 with world=arithmetic:6
"""

from __future__ import annotations

from strop.control.budgets.in_waves import InWaves
from strop.filter.gates.last_family import LastFamily
from strop.filter.rewards.format import Formatted
from strop.generate.strategies.helped.hint_ladder import HintLadder
from strop.recipes.setting import Setting
from strop.run import Run
from strop.training.advantages.group_standard import GroupStandard
from strop.training.losses.clip import Clip

_SHARES = (0.25, 0.5, 0.75)  # of the solution, one wave after the other
_EPSILON = 1e-4  # beside the spread of rewards


def ghpo(
    setting: Setting = Setting(),
    form: float = 0.5,  # weight of the reward for a reply of the right form; being right weighs 1
    clip: float = 0.2,  # a token whose ratio left 1 by more gets no gradient
) -> Run:
    """Up to three more waves, with hints of 25, 50 and 75 % of the working, until one attempt is right."""
    run = setting.run(
        "ghpo",
        GroupStandard(_EPSILON),
        (Clip(clip, clip),),
        budget=InWaves(setting.group_size, 1 + len(_SHARES), only_when_lost=True),
        gates=(LastFamily(),),
    )
    run.rewards = (*run.rewards, Formatted(weight=form))
    run.strategy = HintLadder(run.worlds, _SHARES)
    return run
