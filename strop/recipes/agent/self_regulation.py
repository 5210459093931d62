"""When to ask for help: it is tried at random, a table says where it is worth its price, and that is imitated.

Title: Self-Regulation and Requesting Interventions
Paper: arXiv 2502.04576 (2025)
Claim: Asking where it is worth it makes an agent as good as asking always, with a fraction of the help.
Reading: See the mechanisms. A tabular plan within a budget of helps labels every state as help or act; the price of
    help is the smallest that keeps to the budget. A state is the kind of task and the turn. Help is a right reply of
    the world, at most `most` times in an attempt, whatever is planned.
Left out: A reward model of the process that says how likely success is in states never seen, and a helper apart from
    the policy. The abstract and the project's page alone were read.
Acts: helps > 0 and help_states > 0 and help_price > 0 and credit < 1
"""

from __future__ import annotations

from strop.environments.bundled.ask_for_help import HelpOffered
from strop.generate.agents.help_at_random import HelpAtRandom
from strop.recipes.setting import Setting
from strop.recipes.wrapped_environments import wrap_worlds
from strop.run import Run
from strop.training.advantages.help_labels import HelpLabels
from strop.training.losses.reinforce import Reinforce


def self_regulation(
    setting: Setting = Setting(world="keyvalue:4"),
    budget: float = 1.0,  # helps of an attempt, in the mean
    most: int = 3,  # helps of an attempt, at most
    share: float = 0.3,  # of turns in which help is asked for at random
) -> Run:
    """A policy gradient whose credit is 1 or 0: likelihood of the labelled decisions."""
    run = setting.run("self_regulation", HelpLabels(budget), (Reinforce(),), agent=HelpAtRandom(share))
    wrap_worlds(run, lambda world: (HelpOffered(world, most),))
    return run
