"""A search over steps that are worth something when they are right and surprise, but not too much; pairs for ORPO.

Title: COS(M+O)S: Curiosity and RL-Enhanced MCTS for Exploring Story Space via Language Models
Paper: arXiv 2501.17104 (2025)
Claim: 67 to 77 % of readers favour the expansions it rates highest; a 3B model comes within 0.06 SD of one of 70B.
Reading: Only the abstract and summaries are public: see the mechanism for curve and search; the weight of the odds is
    ORPO's own. `group_size` counts simulations. Pairs of the current policy each step, one optimizer step per draw; the
    surprise is that under the first model, which no policy can game.
Left out: Stories, and a learned value of their coherence: the world's own word on an end stands for it.
Acts: fact/curiosity > 0 and margin != 0
"""

from __future__ import annotations

from strop.filter.gates.zero_variance import ZeroVariance
from strop.filter.rewards.from_strategy import Noted
from strop.generate.strategies.trees.plot_search import PlotSearch
from strop.recipes.setting import Setting
from strop.run import Run
from strop.training.advantages.constant import Constant
from strop.training.losses.pairs.orpo import Orpo
from strop.training.reductions.sequence_mean import SequenceMean


def cosmos(
    setting: Setting = Setting(world="countdown:4"),
    tokens: int = 8,  # of a step
    width: int = 4,  # children of a node
    explore: float = 1.4,  # weight of nodes that were seldom visited
    odds: float = 0.1,  # weight of the odds beside the likelihood
) -> Run:
    """group_size simulations of each task."""
    run = setting.run(
        "cosmos",
        Constant(),
        (Orpo(odds),),
        strategy=PlotSearch(tokens, max(setting.max_tokens // tokens, 1), width, explore),
        gates=(ZeroVariance(),),
        reduction=SequenceMean(),
    )
    (judged,) = run.rewards
    run.rewards = (Noted(judged),)
    return run
