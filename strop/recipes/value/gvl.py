"""An adviser sees the steps of an attempt out of order and says how far each is; what rises with time is imitated.

Title: Vision Language Models are In-Context Value Learners
Paper: arXiv 2411.04549 (2024)
Claim: Progress of more than 300 real robot tasks is told without training, and serves to choose data and weigh it.
Reading: Steps of a dialogue stand for frames of a video. Attempts are the policy's own, where the paper has collected
    ones: those of a value-order correlation of at least 0.5 are kept, and each step is imitated with the weight
    exp(sharpness * its progress). Both constants are from memory of the paper. The world's own pay is measured alone.
Left out: Images. Solved examples in the adviser's context.
Acts: reward/in_context_progress != 0 and progress_weight_spread > 0
"""

from __future__ import annotations

from dataclasses import replace

from strop.filter.gates.ordered import Ordered
from strop.filter.rewards.in_context_progress import InContextProgress
from strop.generate.llm_clients.procedural import Procedural
from strop.recipes.setting import Setting
from strop.run import Run
from strop.training.advantages.progress_weighted import ProgressWeighted
from strop.training.losses.reinforce import Reinforce


def gvl(
    setting: Setting = Setting(world="guess:3"),
    adviser: str = "strop.standins.judges.progress:guessing",  # module:function that says how far each step is
    least: float = 0.5,  # value-order correlation of an attempt that is imitated
    sharpness: float = 1.0,  # of weights, in progress
) -> Run:
    """No answer is known: progress alone chooses and weighs."""
    run = setting.run("gvl", ProgressWeighted(sharpness), (Reinforce(),), gates=(Ordered(least),))
    (judged,) = run.rewards
    run.rewards = (InContextProgress(Procedural(adviser)), replace(judged, weight=0.0))  # type: ignore[type-var]
    return run
