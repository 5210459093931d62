"""A text of what good attempts do and bad ones do not, read in training alone; right answers pay for needless calls.

Title: LightSearcher: Efficient DeepSearch via Experiential Memory
Paper: arXiv 2512.06653 (2025)
Claim: As right as the best deep search with 39.6 % fewer tool calls, 48.6 % less time and 21.2 % fewer tokens.
Reading: GRPO on a store that is asked by tool calls, in place of a search engine; what tools answer is not trained on.
    The world's judgement stands for F1. How few calls are enough is known once a task was solved, so tasks come back. A
    rule of the bundled worlds writes the text in place of a language model; adviser=itself asks the policy. The bundled
    model has never read such text: what this recipe shows there is the flow.
Left out: Prompts, and rates that were not found.
Acts: lessons > 0 and fact/memory > 0 and fact/least_calls > 0 and fact/examples > 0 with every=1, tasks=2
"""

from __future__ import annotations

from dataclasses import replace

from strop.control.samplers.few import Few
from strop.filter.rewards.fewest_calls import FewestCalls
from strop.generate.memory.store import Library
from strop.generate.strategies.memory.experiential_memory import ExperientialMemory
from strop.recipes.llm_clients import parse_reflector
from strop.recipes.setting import Setting
from strop.run import Run
from strop.training.advantages.group_standard import GroupStandard
from strop.training.losses.clip import Clip


def lightsearcher(
    setting: Setting = Setting(world="keyvalue:2", group_size=12),
    adviser: str = "rules",  # who writes the text: rules, itself (the policy), or http://HOST:PORT/v1#MODEL
    tasks: int = 64,  # of each world, which come back
    every: int = 5,  # steps after which the text is written anew
    best: float = 1.0,  # reward of a good attempt
    worst: float = 0.3,  # reward below which an attempt is bad
    price: float = 0.75,  # of a call beyond the fewest, in the exponent
    most: int = 64,  # good attempts that are kept, and as many bad ones
    longest: int = 160,  # characters of text and example together
    clip: float = 0.2,  # a token whose ratio left 1 by more gets no gradient
) -> Run:
    """group_size attempts read the memory and an example; held-out tasks are attempted without."""
    memory = ExperientialMemory(Library(most), parse_reflector(adviser), every, best, worst, longest)
    run = setting.run("lightsearcher", GroupStandard(), (Clip(clip, clip),), strategy=memory)
    (judged,) = run.rewards
    run.rewards = (replace(judged, weight=0.0), FewestCalls(judged, price))  # type: ignore[type-var]
    run.sampler = Few(run.worlds, tasks)
    return run
