"""GRPO on attempts that think on several paths at once where they choose to; some steps pay for that.

Title: Parallel-R1: Towards Parallel Thinking via Reinforcement Learning
Paper: arXiv 2509.07980 (2025)
Claim: 8.4 % better than sequential thinking under RL on three mathematics benchmarks; as a scaffold, 42.9 % on AIME25.
Reading: First supervised training on traces of easier worlds too, then RL with the alternating reward: of every ten
    steps eight pay 1 for right and -1 for wrong, two 1.2 for right in parallel. Paths do not see each other (the
    structured variant); the position of what follows them is after all of them, not after the longest. Forced tags are
    given, not trained. Two paths, at most four blocks, 8 attempts, clip 0.2 and 0.28, no KL, as released. `scaffold`
    ends the bonus after so many versions (200 there). Two optimizer steps per draw. Tags are one character each. In
    supervised training a trace is one text: there a path reads those before it.
Left out: The stage of RL on easy tasks that pays for valid blocks alone; the variant whose paths see those before.
Acts: turns > 1 and warmup/nll > 0 with warmup_steps=12, easy=arithmetic:1
"""

from __future__ import annotations

from dataclasses import replace

from strop.filter.rewards.parallel_bonus import ParallelBonus
from strop.generate.agents.demonstrate_parallel import DemonstrateParallel
from strop.generate.agents.parallel_paths import STOPS, ParallelPaths
from strop.recipes.setting import Setting
from strop.recipes.warmup import shown
from strop.run import Run
from strop.training.advantages.group_standard import GroupStandard
from strop.training.losses.clip import Clip
from strop.types import Sampling


def parallel_r1(
    setting: Setting = Setting(world="arithmetic:4"),
    paths: int = 2,  # of a block
    blocks: int = 4,  # of a reply at most
    bonus: float = 0.2,  # for a right attempt in parallel
    plain: int = 8,  # of every ten versions, without a bonus
    scaffold: int = 0,  # last version with a bonus; 0: all
    easy: str = "arithmetic:3+arithmetic:4",  # worlds of the supervised training before
    warmup_steps: int = 40,  # of that training
) -> Run:
    """Held-out attempts may think in parallel, too."""
    agent = ParallelPaths(paths, blocks)
    sampling = Sampling(temperature=setting.temperature, max_tokens=setting.max_tokens, stop=STOPS)
    run = setting.run("parallel_r1", GroupStandard(), (Clip(0.2, 0.28),), agent=agent, sampling=sampling, minibatches=2)
    (judged,) = run.rewards
    measured = replace(judged, weight=0.0)  # type: ignore[type-var]
    run.rewards = (ParallelBonus(judged, bonus, plain=plain, last=scaffold), measured)
    run.evaluation = replace(run.evaluation, agent=agent)
    if (taught := shown(replace(setting, world=easy), "parallel_r1", warmup_steps)) is not None:
        run.warmup = replace(taught, agent=DemonstrateParallel(taught.agent, paths))
    return run
