"""New tasks from failed ones, those within reach tried; the policy is regressed onto credit, near its last phase.

Title: WebRL: Training LLM Web Agents via Self-Evolving Online Curriculum Reinforcement Learning
Paper: arXiv 2411.02337 (2024)
Claim: On WebArena-Lite Llama-3.1-8B goes from 4.8 to 42.4 % and GLM-4-9B from 6.1 to 43 % (GPT-4-Turbo: 17.6 %).
Reading: The paper's loss and credit of each turn, with one beta; its release splits beta by how sure the reference
    was, keeps the sign of credit alone and masks what is negative. Attempts count the same here, and turns within one;
    there every turn does. Phases are `phase` versions: the reference is the policy of the phase before. Which written
    tasks are tried a value model of prompts says (`pcl`), in the paper's band; in the paper its critic does. The world
    judges where the paper has a learned outcome model. Past successes come back by the perplexity they were written
    with. Rules of the bundled worlds write tasks in place of GPT-4o.
Left out: A judge of whether a task is feasible at all, the supervised first phase, two heads of the critic.
Acts: written > 0 and written_share > 0 and replayed_share > 0 and moved > 0 and reference_version > 0
    with phase=2, sure=1
"""

from __future__ import annotations

from strop.control.estimators.prompt_value_head import PromptValue
from strop.control.samplers.uniform import Uniform
from strop.control.samplers.with_generated import WithWritten
from strop.control.task_generators.from_failed import FromFailed
from strop.recipes.llm_clients import parse_adviser
from strop.recipes.setting import Setting
from strop.replay.confident_successes import ConfidentSuccesses
from strop.run import Run
from strop.training.advantages.turn_progress import TurnProgress
from strop.training.losses.advantage_regression import AdvantageRegression
from strop.training.reductions.equal_turns import EqualTurns
from strop.training.trainers.moving_reference import MovingReference
from strop.training.trainers.torch import TorchTrainer
from strop.training.values.turn_success import TurnSuccess


def webrl(
    setting: Setting = Setting(world="keyvalue:3+keyvalue:5", group_size=4),
    adviser: str = "rules",  # who writes tasks: rules, itself (the policy), or http://HOST:PORT/v1#MODEL
    share: float = 0.5,  # of the draws that written tasks may have
    tasks: int = 2,  # that follow from a task nobody solved
    low: float = 0.05,  # success to foresee of a written task that is tried
    high: float = 0.75,  # success to foresee beyond which it is not tried
    beta: float = 1.0,  # the policy goes to reference * exp(credit / beta)
    trace: float = 0.5,  # of credit that the critic gives from turn to turn; the rest is what was paid in the end
    phase: int = 20,  # versions after which the reference is the policy of then
    again: float = 2.0,  # old groups with successes for each new one
    unsure: float = 0.5,  # probability of a token, in the geometric mean, above which a success comes back
    sure: float = 0.95,  # and up to which
    value_learning_rate: float = 1e-4,  # of the critic
) -> Run:
    """An agent's curriculum that grows out of its failures."""
    policy, reference = (TorchTrainer(learning_rate=setting.learning_rate, device=setting.device) for _ in range(2))
    run = setting.run(
        "webrl",
        TurnProgress(trace),
        (AdvantageRegression(beta),),
        belief=PromptValue(device=setting.device),
        values=TurnSuccess(value_learning_rate, device=setting.device),
        buffer=ConfidentSuccesses(unsure, sure, again, setting.seed),
        reduction=EqualTurns(),
        trainer=MovingReference(policy, reference, phase),
    )
    run.writer = FromFailed(parse_adviser(adviser), tasks)
    run.sampler = WithWritten(Uniform(run.worlds), share, (low, high))
    return run
