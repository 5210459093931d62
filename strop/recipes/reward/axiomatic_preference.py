"""Axiomatic preference model: a Bradley-Terry reward model trained on pairs built from five axioms, without labels.

Title: Axiomatic Preference Modeling for Longform Question Answering
Paper: arXiv 2312.02206 (2023)
Claim: A scorer of about 220 million parameters agrees with human labels more often than GPT-4.
Reading: Only the abstract was found. The axioms are from memory, adapted to environments whose completions show a chain
    of thought; the loss is Bradley-Terry on the union of their pairs. The share of each axiom is ours: with equal
    shares, pairs that are trivial to tell apart would be most of the loss. The scorer is a language model that answers
    with one token, + or -, and its score is the difference of their logits: `strop train par judge=FOLDER` reads the
    run's checkpoints. No pair comes twice, so preferred_share is about unseen pairs; held-out accuracy is of sampled
    verdicts, which a loss on score differences does not train.
Left out: Human votes and retrieved evidence: the environments' checks and worked solutions stand in for them.
Acts: score_margin != 0 and share/teacher > 0
"""

from __future__ import annotations

from strop.recipes.preference_pairs import preferring
from strop.recipes.setting import Setting
from strop.run import Run
from strop.training.losses.preferences.bradley_terry import BradleyTerry


def axiomatic_preference(
    setting: Setting = Setting(group_size=2, groups_per_step=64, learning_rate=3e-4),
    useful: float = 0.6,  # share of pairs: a right and a wrong completion
    relevant: float = 0.1,  # share: completions to this and to another question
    grounded: float = 0.1,  # share: answers with and without their chain of thought
    evidence: float = 0.1,  # share: chains of thought of this and of another question
    merged: float = 0.1,  # share: a whole chain of thought and a part of it
) -> Run:
    """Each pair states which of two completions is better, by one of five axioms."""
    shares = {"useful": useful, "relevant": relevant, "grounded": grounded, "evidence": evidence, "merged": merged}
    axioms = tuple((name, share) for name, share in shares.items() if share > 0)
    return preferring(setting, "axiomatic_preference", (BradleyTerry(),), axioms=axioms)
