"""Nodes share what they tried as text in a folder; each trains on some groups of its own and some of others.

Key: sapo
Title: Sharing is Caring: Efficient LM Post-Training with Collective RL Experience Sharing
Paper: arXiv 2509.08721 (2025)
Claim: Eight small models that train on as many shared groups as own ones gain up to 94 % in reward over none shared.
Reading: The paper's draw: uniform among shared groups that are not all alike by the node's own judgement. Foreign text
    is tokenized and judged here and trained without a ratio, which with one update per draw is what the paper's loss
    is. A folder stands for the network; nobody is waited for. foreign 0 is a plain policy gradient on own groups.
Left out: Nodes of several models in one process: each node is a run of its own, with whatever model.
Acts: shared_groups > 0 and foreign_share < 1 with folder=RUN
"""

from __future__ import annotations

from strop.control.samplers.shared_tasks import SharedTasks
from strop.generate.strategies.swarm import Swarm
from strop.recipes.setting import Setting
from strop.run import Run
from strop.training.advantages.group_standard import GroupStandard
from strop.training.losses.reinforce import Reinforce


def sapo_sharing(
    setting: Setting = Setting(),
    *,
    folder: str,  # where all nodes share; relative to where the run is started
    node: str = "node",  # this one's name there; empty: it only reads
    own: int = 4,  # groups of each round
    foreign: int = 4,  # groups of each round that others made
) -> Run:
    """A node of a swarm; its peers are other runs with the same folder and other names."""
    run = setting.run("sapo_sharing", GroupStandard(epsilon=1e-8), (Reinforce(),), strategy=Swarm(folder, node))
    shared = SharedTasks(run.sampler, run.worlds, folder, node, own, foreign, setting.group_size, setting.seed)
    run.sampler = shared
    return run
