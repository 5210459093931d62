"""A reward model from pairs that axioms make, without labels.

Title: Axiomatic Preference Modeling for Longform Question Answering
Paper: arXiv 2312.02206 (2023)
Claim: A scorer of about 220 million parameters agrees with human labels more often than GPT-4.
Reading: Only the abstract was found; axioms are from memory and read for environments whose completions show their
    working, the
    loss is Bradley-Terry on the union of their pairs. The share of each is ours: with equal ones, those that a glance
    decides would be most of the loss. The scorer is a language model that answers with one token, + or -, and its
    score is the difference of their logits: the run's checkpoints are what `strop train par judge=FOLDER` reads. No
    pair comes twice, so preferred_share is about pairs never seen; held-out accuracy is of verdicts said aloud, which
    differences do not teach.
Left out: Human votes and retrieved evidence: the environments' checks and workings stand for them.
Acts: score_margin != 0 and share/teacher > 0
"""

from __future__ import annotations

from strop.recipes.reward_model_runs import preferring
from strop.recipes.setting import Setting
from strop.run import Run
from strop.training.losses.preferences.bradley_terry import BradleyTerry


def axiomatic_preference(
    setting: Setting = Setting(group_size=2, groups_per_step=64, learning_rate=3e-4),
    useful: float = 0.6,  # share of pairs of a right and a wrong completion
    relevant: float = 0.1,  # of completions to this and to another question
    grounded: float = 0.1,  # of answers with and without their working
    evidence: float = 0.1,  # of workings of this and of another question
    merged: float = 0.1,  # of a whole working and a part of it
) -> Run:
    """Which of two completions is better, by five axioms."""
    shares = {"useful": useful, "relevant": relevant, "grounded": grounded, "evidence": evidence, "merged": merged}
    axioms = tuple((name, share) for name, share in shares.items() if share > 0)
    return preferring(setting, "axiomatic_preference", (BradleyTerry(),), axioms=axioms)
