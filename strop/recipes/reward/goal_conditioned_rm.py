"""A reward model whose states on the way of a good reply resemble those at its end, and not those of a bad one.

Title: Learning Goal-Conditioned Representations for Language Reward Models
Paper: arXiv 2407.13887 (2024)
Claim: Up to 0.09 AUROC on mathematics and 2.3 % accuracy on Helpful-Harmless; partial replies can be judged, which
    filters up to 55 % of tokens.
Reading: As released: weight 0.5, 16 draws per reply, each source with one goal. A state is that in which a token was
    chosen.
Left out: Scoring partial replies by their cosine to the mean end of good ones, and steering by it.
Acts: score_margin != 0 and goal_cosine != 0 and other_cosine != 0
"""

from __future__ import annotations

from strop.generate.strategies.verdict_data import RecitedVerdicts
from strop.recipes.reward_model_runs import preferring
from strop.recipes.setting import Setting
from strop.run import Run
from strop.training.losses.preferences.bradley_terry import BradleyTerry
from strop.training.losses.preferences.goal_contrast import GoalContrast


def goal_conditioned_rm(
    setting: Setting = Setting(world="arithmetic:2", group_size=2, groups_per_step=64, learning_rate=1e-3),
    beta: float = 0.5,  # weight of the contrast beside Bradley-Terry
    draws: int = 16,  # of a state and a later one, of each reply
) -> Run:
    """Bradley-Terry at the verdict, and a contrast of states within the replies."""
    losses = (BradleyTerry(), GoalContrast(draws, setting.seed, beta))
    run = preferring(setting, "goal_conditioned_rm", losses)
    run.strategy = RecitedVerdicts(says_replies=True)
    return run
