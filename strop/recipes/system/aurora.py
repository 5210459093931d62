"""Speculative decoding whose draft learns, while the run goes on, from what the policy samples.

Title: When RL Meets Adaptive Speculative Training: A Unified Training-Serving System
Paper: arXiv 2602.06932 (2026)
Claim: 1.5 times as fast from the first day, and 1.25 times a well-trained draft that stands still.
Reading: A guess holds where the policy draws the very same token with the random number of that position: tokens are
    those of a run without a draft, not only their distribution. The draft is one gated hidden layer over the policy's
    last state and the token after it, read by the policy's own head, taught by KL(policy || draft) four guesses deep
    with weights 0.8^i, and at guesses that were not taken with weight 0.1 (the paper's is not known). Beside the paper
    the distance of states is taught too (as in EAGLE), the mean of the newest weights guesses, and tokens are drawn by
    a race, so that two distributions that are alike mostly draw the same one: 1.43 tokens a look in place of 1.28, from
    256 completions of SmolLM2. New weights empty the pool of what it learns from: in a run the policy moves too. It
    begins knowing nothing, and guesses while at most `rows` sequences are decoded. Training is GRPO's.
Left out: A draft with keys of its own (EAGLE 3), a trainer in another process; the metric below of engines that are
    placed in a Ray cluster, which guess and learn all the same. No checkpoint has the draft: a resumed run has the same
    tokens and weights, and begins once more with a draft that knows nothing.
Acts: draft/tokens_per_look > 1 with steps=1
"""

from __future__ import annotations

from strop.generate.engines.paged.draft_model import Draft
from strop.generate.engines.paged.paged_engine import PagedEngine
from strop.recipes.setting import Setting
from strop.run import Run
from strop.training.advantages.group_relative import GroupStandard
from strop.training.losses.clip import Clip


def aurora(
    setting: Setting = Setting(),
    guesses: int = 4,  # tokens ahead
    rows: int = 64,  # sequences at most while it guesses: those of a step
) -> Run:
    """Guesses that hold save looks of the model; every token is what it would have been without them."""
    dtype = "bfloat16" if setting.device.startswith("cuda") else "float32"
    engine = PagedEngine(device=setting.device, dtype=dtype, draft=Draft(guesses, rows), races=True)
    return setting.run("aurora", GroupStandard(), (Clip(),), engine=engine)
