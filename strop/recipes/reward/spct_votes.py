"""GRPO by a judge that scores all attempts at a task together, several times and in another order each time.

Reading: SPCT's inference-time scaling: scores of `votes` answers at temperature 0.5 are added up, or of those `kept`
    that another judge trusts most. The judge is what `spct` trains; a rule that checks calculations stands for it, and
    says the same in every order. What the world would have paid is logged beside it and weighs nothing.
Acts: reward/shuffled_votes > 0
Papers: spct
"""

from __future__ import annotations

from strop.filter.rewards.judged.shuffled_votes import ShuffledVotes
from strop.recipes.environment_metric import measured
from strop.recipes.llm_clients import judge_seconds, parse_judge
from strop.recipes.setting import Setting
from strop.run import Run
from strop.training.advantages.group_standard import GroupStandard
from strop.training.losses.clip import Clip
from strop.training.losses.kl import Kl

_RULE = "strop.standins.judges.listwise:scored"


def spct_votes(
    setting: Setting = Setting(group_size=4),
    judge: str = "rules",  # who scores: rules, itself, a folder, or http://HOST/v1#MODEL
    meta: str = "",  # who says which answers to trust: a model folder or an address; empty: all count
    votes: int = 4,  # answers of the judge about one group; 32 in the paper
    kept: int = 2,  # of them, those that count where there is a second judge
    kl: float = 0.01,  # weight of the penalty to the reference
) -> Run:
    """No answers are needed where a judge can compare."""
    run = setting.run("spct_votes", GroupStandard(), (Clip(0.2, 0.2), Kl("k3", kl)))
    second = parse_judge(meta, _RULE) if meta else None
    run.rewards = (ShuffledVotes(parse_judge(judge, _RULE), votes, second, kept), measured(run.worlds))
    run.reward_seconds = max(judge_seconds(judge), judge_seconds(meta or "rules"))
    return run
