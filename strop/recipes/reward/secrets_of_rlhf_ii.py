"""A reward model from noisy pairs: several others vote on each, and decide its label, its certainty and its margin.

Key: secrets-of-rlhf-ii
Title: Secrets of RLHF in Large Language Models Part II: Reward Modeling
Paper: arXiv 2401.06080 (2024)
Claim: Reward models and policies trained on pairs whose strength was measured are more stable and generalise better.
Reading: judges are folders of reward models, joined by +: runs of this recipe without any and with other seeds, ten in
    the paper. Labels are wrong where their mean difference is among the lowest 20 % of pairs and below 0 (in the
    paper's data that is one thing), soft where it is below 0 otherwise, and all pairs have it as margin. A share of
    noisy labels stands for those of annotators. The release has the plain loss only.
Left out: The contrastive loss on features, and the meta-learning of spread on the policy's samples.
Acts: flipped_share > 0 and strength != 0 with judges=MODEL
"""

from __future__ import annotations

from strop.generate.reward_model import RewardModel
from strop.generate.strategies.voted import Voted
from strop.models.names import model_folder
from strop.recipes.reward_model_runs import preferring
from strop.recipes.setting import Setting
from strop.run import Run
from strop.training.losses.preferences.bradley_terry import BradleyTerry
from strop.training.losses.preferences.margin_preference import MarginPreference


def secrets_of_rlhf_ii(
    setting: Setting = Setting(world="arithmetic:2", group_size=2, groups_per_step=64, learning_rate=1e-3),
    judges: str = "",  # folders of reward models, joined by +; empty: the plain loss, which makes such models
    noise: float = 0.2,  # share of pairs whose labels are wrong
    wrong: float = 0.2,  # share of pairs whose labels are taken for wrong, of those that the judges speak against
    soft: float = 0.1,  # how far an unsure label is from certainty
) -> Run:
    """Bradley-Terry on noisy labels, and with judges on labels that they have mended."""
    if not judges:
        return preferring(setting, "secrets_of_rlhf_ii", (BradleyTerry(),), noise=noise)
    run = preferring(setting, "secrets_of_rlhf_ii", (MarginPreference(soft),), noise=noise)
    models = tuple(RewardModel(str(model_folder(folder)), setting.device) for folder in judges.split("+"))
    run.strategy = Voted(run.strategy, models, run.worlds, wrong)
    return run
