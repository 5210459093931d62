"""A first answer, then a search only where it is wrong: half of the questions need one, the other half do not.

Title: SEM: Reinforcement Learning for Search-Efficient Large Language Models
Paper: arXiv 2505.07903 (2025)
Claim: Far fewer needless searches, with answers as right as before or better, in questions of several kinds.
Reading: A first answer that is right earns its F1 where nothing is searched, and nothing where something is; one that
    is wrong earns the F1 of the last answer, if there was a search. Right is an F1 of a half: the constants were
    not found, and neither were the optimizer's, so group-relative advantages and a clip of 0.2. Questions that need no
    search are short sums here and facts that no model knows are the others, drawn equally often; the paper has general
    knowledge and questions of several hops. A short supervised run shows both, and half of the sums looked up after
    they were answered: the paper's models search needlessly to begin with, and one that never does cannot unlearn it.
    On sums alone with a rate of 3e-4, 28 of 100 attempts searched needlessly at first and none two steps later; paid
    for right answers alone they became 53 of 100.
Left out: A dense index; a template of tags, since the first reply's words are the first answer.
Acts: fact/needless > 0 and fact/first_right > 0 and fact/searched > 0 and fact/first_right < 1 with warmup_steps=8
"""

from __future__ import annotations

from dataclasses import replace

from strop.environments.bundled.search import Search
from strop.environments.tools.rechecked import Rechecked
from strop.environments.tools.search_tool import Retrieval
from strop.filter.rewards.tools.search_or_answer import SearchOrAnswer
from strop.generate.agents.chat import Chat
from strop.recipes.setting import Setting
from strop.recipes.warmup import shown
from strop.recipes.wrapped_environments import wrap_worlds
from strop.roles import World
from strop.run import Run
from strop.training.advantages.group_standard import GroupStandard
from strop.training.losses.clip import Clip


def sem(
    setting: Setting = Setting(world="search:1+arithmetic:2"),
    known: float = 0.5,  # F1 of a first answer from which on a search is needless
    turns: int = 4,  # of one attempt, at most
    warmup_steps: int = 12,  # of supervised training first
    needless: float = 0.5,  # of what it shows in worlds that need no search: searched for all the same
) -> Run:
    """Worlds that need a search and worlds that do not, all with the tool."""
    run = setting.run("sem", GroupStandard(), (Clip(0.2, 0.2),), agent=Chat(turns))
    run.warmup = shown(setting, "sem", warmup_steps)
    wrap_worlds(run, lambda world: (_with_search(world, needless),))
    run.rewards = (SearchOrAnswer(known),)
    run.evaluation = replace(run.evaluation, agent=run.agent)
    return run


def _with_search(world: World, needless: float) -> World:
    if isinstance(world, Search):
        return replace(world, style="guess")
    return Rechecked(world, (Retrieval(),), share=needless)
