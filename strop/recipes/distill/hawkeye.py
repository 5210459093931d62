"""The policy learns to write short chains of thought from which a small model can still answer.

Title: Hawkeye: Efficient Reasoning with Model Collaboration
Paper: arXiv 2504.00424 (2025)
Claim: Comparable answers from 35 % of the full chain of thought, up to 3.4 times as fast and at 60 % less cost.
Reading: What a chain costs is in shares of the plain one, see the reward; its weight was not found: 1. GRPO on the
    policy alone. Accuracy on held-out tasks is that of both models together.
Left out: The search for redundancy before training. What keeps a chain from holding the answer itself: nothing does.
Acts: reward/short_chain < 0 and fact/plain_tokens > 0 and tokens_advised > 0 with answerer=MODEL
"""

from __future__ import annotations

from dataclasses import replace

from strop.filter.rewards.short_chain import ShortChain
from strop.generate.agents.chat import Chat
from strop.generate.agents.relayed import Relayed
from strop.generate.engines.select_engine import engine_on
from strop.generate.engines.wrappers.policy_and_reference import WithReference
from strop.generate.llm_clients.local_model import Local
from strop.generate.strategies.independent import Independent
from strop.generate.strategies.measured_by_plain import MeasuredByPlain
from strop.models.names import model_folder
from strop.recipes.setting import Setting
from strop.run import Run
from strop.training.advantages.group_standard import GroupStandard
from strop.training.losses.clip import Clip
from strop.training.losses.kl import Kl
from strop.training.reductions.sequence_mean import SequenceMean


def hawkeye(
    setting: Setting = Setting(),
    *,
    answerer: str,  # folder of the small model that answers
    free: float = 0.3,  # share of the plain chain's length that costs nothing
    price: float = 1.0,  # of the square of what exceeds it
    kl: float = 0.04,  # weight of the penalty to the reference
) -> Run:
    """`answerer` is a folder with a model that answers from chains; it learns nothing."""
    agent = Relayed(Local(str(model_folder(answerer)), setting.device), setting.max_tokens)
    run = setting.run(
        "hawkeye",
        GroupStandard(),
        (Clip(0.2, 0.2), Kl("k3", kl)),
        agent=agent,
        engine=WithReference(engine_on(setting.device), engine_on(setting.device)),
        strategy=MeasuredByPlain(Independent(), Chat()),
        reduction=SequenceMean(),
    )
    run.rewards = (*run.rewards, ShortChain(free, price))
    return replace(run, evaluation=replace(run.evaluation, agent=agent))
