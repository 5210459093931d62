"""Failed tasks are tried again with a teacher's guidance; what passes then is preferred to what failed before.

Key: agent-rlvr
Title: Agent-RLVR: Training Software Engineering Agents via Guidance and Environment Rewards
Paper: arXiv 2506.11425 (2025)
Claim: From 9.4 to 22.4 % of SWE-Bench Verified at 72B, and 27.8 % with a reward model at test time.
Reading: Details beyond a summary were not found. Pairs are the best and the worst attempt at a task, so a success with
    guidance against the first failure without; guidance is taken out of the prompt before training; DPO with beta 0.1
    against the first weights. A task that is solved at once never calls the teacher, and one that nobody solves makes
    no pair. A rule stands for the teacher: the right steps as far as the first that the reply lacks.
Left out: The outcome reward model for the choice among attempts at test time.
Acts: share/guided > 0 and margin != 0 with world=arithmetic:6
"""

from __future__ import annotations

from strop.control.budgets.retry_if_all_failed import AgainWhenLost
from strop.filter.gates.best_vs_worst_pair import BestAndWorst
from strop.generate.llm_clients.procedural import Procedural
from strop.generate.strategies.helped.guided_retry import GuidedRetry
from strop.recipes.llm_clients import parse_adviser
from strop.recipes.setting import Setting
from strop.roles import Adviser
from strop.run import Run
from strop.training.advantages.constant import Constant
from strop.training.losses.pairs.dpo import Dpo
from strop.training.reductions.sequence_mean import SequenceMean

_RULE = "strop.standins.feedback:put_right"


def agent_rlvr(
    setting: Setting = Setting(world="arithmetic:6", group_size=2),
    guide: str = "rules",  # or http://HOST:PORT/v1#MODEL, a teacher that writes guidance
    beta: float = 0.1,  # of the reward that log(policy / reference) stands for
) -> Run:
    """Where all attempts failed, each is tried once more with guidance; pairs are trained without it."""
    return setting.run(
        "agent_rlvr",
        Constant(),
        (Dpo(beta),),
        budget=AgainWhenLost(setting.group_size, setting.group_size),
        strategy=GuidedRetry(_guide(guide)),
        gates=(BestAndWorst(),),
        reduction=SequenceMean(),
    )


def _guide(text: str) -> Adviser:
    return (None if text == "rules" else parse_adviser(text)) or Procedural(_RULE)
