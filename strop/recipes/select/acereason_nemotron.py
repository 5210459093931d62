"""RL on mathematics with longer and longer replies, then on code, then on mathematics again; solved tasks drop out.

Title: AceReason-Nemotron: Advancing Math and Code Reasoning through Reinforcement Learning
Paper: arXiv 2505.16400 (2025)
Claim: Mathematics alone gives 14.6 and 17.2 % on AIME 2025 and 6.8 and 5.8 % on LiveCodeBench (7B and 14B).
Reading: Six runs, each from the model of the one before: mathematics at 8K, 16K and 24K tokens, code at 24K and 32K,
    mathematics at 32K; here these are 3/8 (a quarter would cut every reply short), 1/2, 3/4 and all of `max_tokens`.
    Groups of 8 in the first stage of each and 16 after, rewards divided by the group's spread, strictly on-policy, no
    KL and no entropy. From mathematics at 24K and code at 32K on, tasks that more than 6 of 16 attempts solve are not
    tried again; for code the share was not found. Sums stand for mathematics, and expressions that reach a target for
    code.
Left out: Rates of teachers by which code tasks are chosen, and code's changes of temperature and learning rate.
Acts: passed_over > 0 with tasks=4
"""

from __future__ import annotations

from dataclasses import replace

from strop.control.samplers.few import Few
from strop.control.samplers.uniform import Uniform
from strop.control.samplers.unsolved import Unsolved
from strop.recipes.environments import parse_worlds
from strop.recipes.setting import Setting
from strop.run import Run
from strop.training.advantages.group_standard import GroupStandard
from strop.training.losses.clip import Clip

# of each stage: whether it is code, share of the longest reply, factor of attempts, and whether solved tasks drop out
_STAGES = (
    (False, 0.375, 1, False),
    (False, 0.5, 2, False),
    (False, 0.75, 2, True),
    (True, 0.75, 1, False),
    (True, 1.0, 2, True),
    (False, 1.0, 2, True),
)


def acereason_nemotron(
    setting: Setting = Setting(steps=30),
    code: str = "countdown:4",  # the world of the stages on code
    tasks: int = 64,  # of a stage in which solved ones drop out
    most: float = 0.375,  # share of right attempts up to which a task is tried again
) -> Run:
    """Six stages of `steps` steps each; `group_size` attempts in the first of both kinds, twice as many after."""
    run: Run | None = None
    for is_code, share, factor, is_filtered in _STAGES:
        stage = replace(
            setting,
            world=code if is_code else setting.world,
            max_tokens=max(int(share * setting.max_tokens), 1),
            group_size=setting.group_size * factor,
        )
        made = stage.run("acereason_nemotron", GroupStandard(), (Clip(),))
        made.sampler = Unsolved(Few(made.worlds, tasks), most) if is_filtered else Uniform(made.worlds)
        made.evaluation = replace(
            made.evaluation, unseen=parse_worlds(setting.world if is_code else code, setting.seed)
        )
        made.warmup, run = run, made
    assert run is not None
    return run
