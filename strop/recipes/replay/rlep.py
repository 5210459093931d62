"""Beside fresh attempts at a task stand right ones of an earlier run.

Title: RLEP: Reinforcement Learning with Experience Replay for LLM Reasoning
Paper: arXiv 2507.07451 (2025)
Claim: AIME 2024 from 38.2 to 39.9 %, AIME 2025 from 19.8 to 22.3 % and AMC 2023 from 77.0 to 82.2 %.
Reading: Two replayed attempts join each group; their logprobs are computed anew under the policy before the step, as
    released, so that nothing corrects for their age. DAPO's bounds, dual clip, token mean and price of overlong
    answers, without its dynamic sampling; eight optimizer steps per draw (64 of 512 tasks). Earlier runs of any recipe
    serve as the pool, as long as they had the same worlds and seed; the paper's is a converged one from the same model.
    Right is what the world itself paid 1, whatever else that run rewarded.
Left out: The warm-up of the learning rate and weight decay.
Acts: share/replayed > 0 with pool=RUN, groups_per_step=8
"""

from __future__ import annotations

from pathlib import Path

from strop.filter.rewards.overlong_penalty import Overlong
from strop.generate.strategies.independent import Independent
from strop.generate.strategies.with_successes import WithSuccesses
from strop.recipes.setting import Setting
from strop.run import Run
from strop.training.advantages.group_standard import GroupStandard
from strop.training.corrections.truncated import Truncated
from strop.training.losses.clip import Clip


def rlep(
    setting: Setting = Setting(group_size=16),
    *,
    pool: str,  # folder of the earlier run, as runs/NAME
    replayed: int = 2,  # attempts of the earlier run in each group
) -> Run:
    """`pool` is the folder of an earlier run with the same worlds and seed, as runs/NAME; it is only read."""
    run = setting.run(
        "rlep",
        GroupStandard(),
        (Clip(0.2, 0.28, dual=10.0, anchor="proximal"),),
        strategy=WithSuccesses(Independent(), str(Path(pool) / "ledger.db"), replayed),
        correction=Truncated(target="proximal"),
        minibatches=8,
    )
    run.rewards = (*run.rewards, Overlong(setting.max_tokens, cushion=max(setting.max_tokens // 6, 1)))
    return run
