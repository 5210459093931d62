"""Two voices debate; the best talk of each task, by success, brevity and readability, is imitated.

Title: Optima: Optimizing Effectiveness and Efficiency for LLM-Based Multi-Agent System
Paper: arXiv 2410.08115 (2024)
Claim: Up to 2.8 times the performance with less than a tenth of the tokens, where two agents exchange information.
Reading: The form that fine-tunes in rounds (iSFT), on debates: of ten talks about a task the best, if it reaches 0.6,
    and of those the best 70 %; a round is a step. price and gain are the release's for mathematics. Readability is the
    loss under the model training began with, where it was said; a loss below plain counts as plain, because the bundled
    model's is far below a nat. A talk of 8 tokens is too short here (40 in the release), and a voice repeats itself
    only where it says what it said itself. Talks that are not imitated keep their place in the mean over tokens.
Left out: The tree of turns and its preference pairs (iDPO), the pool of formats for a first round, and rounds that
    start again from the first weights.
Acts: turns > 1 and kept_share < 1 and reward/readable > 0
"""

from __future__ import annotations

from dataclasses import replace

from strop.filter.gates.best import Best
from strop.filter.rewards.readable import Readable
from strop.filter.rewards.token_share import TokenShare
from strop.generate.agents.debate import Debate
from strop.generate.strategies.independent import Independent
from strop.generate.strategies.turn_losses import TurnLosses
from strop.recipes.setting import Setting
from strop.run import Run
from strop.training.advantages.top_share import TopShare
from strop.training.losses.reinforce import Reinforce


def optima(
    setting: Setting = Setting(group_size=10),
    rounds: int = 2,  # how often the solver may hear of the examiner
    price: float = 0.4,  # of the longest talk
    gain: float = 0.8,  # for a talk that reads like plain text
    plain: float = 0.1,  # loss of plain text, in nats per token
    least: float = 0.6,  # reward of a talk that is imitated
    share: float = 0.7,  # of the best talks of a draw
) -> Run:
    """Imitation of what was selected: a policy gradient whose credit is 1 or 0."""
    agent = Debate(rounds)
    run = setting.run(
        "optima",
        TopShare(share),
        (Reinforce(),),
        agent=agent,
        strategy=TurnLosses(Independent()),
        gates=(Best(least),),
    )
    run.rewards = (*run.rewards, TokenShare(price, shortest=8), Readable(gain, plain))
    run.evaluation = replace(run.evaluation, agent=agent)
    return run
