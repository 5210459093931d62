"""Any harness is trained as it is: its requests are the rollout, and the tokens it caused are those that are trained.

Title: Polar: Agentic RL on Any Harness at Scale
Paper: arXiv 2605.24220 (2026)
Claim: With Qwen3.5-4B on SWE-Bench Verified 22.6 points more through Codex, 4.8 through Claude Code, 6.2 through Pi.
Reading: The paper joins recorded calls afterwards where one prompt begins with another, and trains completions in a
    stream
    whose later ones were sampled behind re-tokenized copies of them. Here a request goes on from the very tokens that
    were sampled, found by the ids that clients echo, so the stream is the context. Sub-agents and compaction are
    contexts of the same rollout and share its reward. What the program was asked in time counts where it is late; one
    that breaks fails the rollout. GRPO, as in the paper.
Left out: Runtimes that are warmed before their turn, and stragglers that are stopped once enough rollouts are there:
    admissions do that here for all rollouts. A Google dialect.
Acts: served/turns > 0 and served/contexts > 0 and reward/outcome > 0
"""

from __future__ import annotations

from typing import Literal

from strop.generate.agents.external_program import OutsideProgram
from strop.recipes.setting import Setting
from strop.run import Run
from strop.training.advantages.group_standard import GroupStandard
from strop.training.losses.clip import Clip
from strop.training.reductions.sequence_mean import SequenceMean


def polar(
    setting: Setting = Setting(env="keyvalue:3"),
    command: str = "python {programs}/plays.py",  # {programs}: those that come with strop
    pays: Literal["env", "line", "post"] = "env",  # who says what was earned
    seconds: float = 300.0,  # of one rollout
    clip: float = 0.2,  # PPO clip range: ratios are clipped to [1 - clip, 1 + clip]
) -> Run:
    """A command per rollout, behind walls, with the policy at its OPENAI_BASE_URL and ANTHROPIC_BASE_URL."""
    agent = OutsideProgram(command, pays, seconds, isolation=setting.isolation, late="judged")
    return setting.run("polar", GroupStandard(), (Clip(clip, clip),), agent=agent, reduction=SequenceMean())
