"""Polar: GRPO on unmodified agent programs; their requests to the policy endpoint become rollouts, token for token.

Title: Polar: Agentic RL on Any Harness at Scale
Paper: arXiv 2605.24220 (2026)
Claim: With Qwen3.5-4B on SWE-Bench Verified 22.6 points more through Codex, 4.8 through Claude Code, 6.2 through Pi.
Reading: The paper joins recorded calls afterwards, where one prompt is a prefix of another, and so trains completions
    whose later ones were sampled after re-tokenized copies of earlier ones. Here a request continues from the sampled
    tokens themselves, found by the ids that clients send back, so the training context is the sampling context.
    Sub-agents and compaction are further contexts of the same rollout and share its reward. Requests before the time
    limit count even if the program is late; a program that crashes fails the rollout. GRPO, as in the paper.
Left out: Runtimes that are started in advance, and stopping slow rollouts once enough are finished: admissions do that
    here for all rollouts. A Google API dialect.
Acts: served/turns > 0 and served/contexts > 0 and reward/outcome > 0
"""

from __future__ import annotations

from typing import Literal

from strop.generate.agents.external_program import OutsideProgram
from strop.recipes.setting import Setting
from strop.run import Run
from strop.training.advantages.group_relative import GroupStandard
from strop.training.losses.clip import Clip
from strop.training.reductions.means import SequenceMean


def polar(
    setting: Setting = Setting(env="keyvalue:3"),
    command: str = "python {programs}/plays.py",  # agent program; {programs}: bundled ones
    pays: Literal["env", "line", "post"] = "env",  # source of the reward
    seconds: float = 300.0,  # time limit of a rollout
    clip: float = 0.2,  # PPO clip range: ratios are clipped to [1 - clip, 1 + clip]
) -> Run:
    """One sandboxed command per rollout, with the policy at its OPENAI_BASE_URL and ANTHROPIC_BASE_URL."""
    agent = OutsideProgram(command, pays, seconds, isolation=setting.isolation, late="judged")
    return setting.run("polar", GroupStandard(), (Clip(clip, clip),), agent=agent, reduction=SequenceMean())
