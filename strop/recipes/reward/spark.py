"""Policy and judge are one model: attempts become questions about answers and second thoughts, trained beside tasks.

Title: SPARK: Synergistic Policy And Reward Co-Evolving Framework
Paper: arXiv 2509.22624 (2025)
Claim: SPARK-VL-7B gains 9.7 % on 7 reasoning, 12.1 % on 2 reward and 1.5 % on 8 general benchmarks.
Reading: As released: 8 attempts, a penalty of 0.001 to the reference, of each group one question about answers and one
    second thought, at most 32 of each after 64 tasks; here 4 of each after 8. They wait in a queue and are half of all
    draws as long as any waits, checked like any other task and trained by the same loss. Accuracy is measured of all
    three kinds. The bundled model was never asked to judge, so a short supervised run comes before.
Left out: Many wordings of each question, and images.
Acts: written_share > 0 and judged_share > 0 with taught=4
"""

from __future__ import annotations

from strop.control.samplers.uniform import Uniform
from strop.control.samplers.with_generated import WithWritten
from strop.control.task_generators.recycled import Recycled
from strop.environments.judging.multiple_choice import Choice
from strop.environments.judging.true_false import Judged
from strop.recipes.setting import Setting
from strop.recipes.warmup import shown
from strop.recipes.wrapped_environments import wrap_worlds
from strop.run import Run
from strop.training.advantages.group_standard import GroupStandard
from strop.training.losses.clip import Clip
from strop.training.losses.kl import Kl


def spark(
    setting: Setting = Setting(),
    judged: int = 4,  # questions about answers that follow from one step
    reflected: int = 4,  # second thoughts that follow from one step
    pointwise: float = 0.3,  # chance that a mixed group is asked about one answer and not about two
    taught: int = 12,  # steps of supervised training first, on all kinds of questions
    kl: float = 0.001,  # weight of the penalty to the reference
) -> Run:
    """Right and wrong are known of every attempt, so that judging can be trained without any label."""
    run = setting.run("spark", GroupStandard(), (Clip(), Kl("k3", kl)))
    run.warmup, tried = shown(setting, "spark", taught), run.worlds
    wrap_worlds(run, lambda world: (world, Judged(world), Choice(world, 2)))
    run.sampler = WithWritten(Uniform(tried), share=0.5)
    run.writer = Recycled(tried, judged, reflected, pointwise)
    return run
