"""RLPT: GRPO on predicting the next or a missing sentence of plain text; a judge rewards, no labels.

Title: Reinforcement Learning on Pre-Training Data
Paper: arXiv 2509.19249 (2025)
Claim: 3.0, 5.1, 8.1 and 6.0 points on MMLU, MMLU-Pro, GPQA-Diamond and KOR-Bench (Qwen3-4B-Base), and more with more
    computation.
Reading: Both objectives, E[r | next] + share * E[r | between]. The advantage is divided by the group's standard
    deviation, which would cancel a factor of the rewards, so `share` is the frequency of missing-sentence tasks
    relative to next-sentence tasks. 8 rollouts, temperature 1, strictly on-policy, no KL penalty, after a supervised
    start. A rule that compares words stands in for the judge; a prediction must contain the whole next sentence and may
    go on. Texts are sums told in sentences; text=FILE takes others.
Left out: The search for near-duplicates and for text of benchmarks: equal texts are one, and train and held-out sides
    are split by text.
Acts: drawn/next_segment-* > 0 and reward/continued > 0 and warmup/nll > 0 with warmup_steps=8
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import ClassVar

from strop.control.samplers.fixed_mixture import Mixture
from strop.environments.bundled.next_segment import NextSegment
from strop.environments.format.think_tags import final_answer
from strop.environments.needs import EnvNeed, bundled_need
from strop.filter.judges.batch_ask import all_of, judged
from strop.filter.judges.readers import YES_NO
from strop.filter.rewards.from_environment import Earned
from strop.recipes.environment_specs import wrap_envs
from strop.recipes.named_parts import named_part, reward_seconds
from strop.recipes.setting import Setting
from strop.recipes.warmup import BundledOnly, shown
from strop.roles import LLMClient, Reward
from strop.run import Run
from strop.standins.judges.steps import continued
from strop.text.llm_prompt import judgement
from strop.training.advantages.group_relative import GroupStandard
from strop.training.losses.clip import Clip
from strop.types import Group, Rollout

# RLPT's reward (2509.19249): a judge decides whether a prediction means the same as the text's continuation.

ASKED = "Does what the completion says come next in the text, or begin what comes next? Answer with yes or no."


@dataclass(frozen=True)
class Continued(Reward):
    """1 if the judge answers yes, 0 if it answers no or the prediction is empty; no reward for any other answer.

    The judge reads the next sentence on one line and all that follows on another, because a prediction may be longer
    than a sentence. For tasks of `NextSegment`.
    """

    judge: LLMClient
    weight: float = 1.0
    prompt: str = ASKED  # what the judge is asked, below both texts

    is_inline: ClassVar[bool] = True  # awaits its LLM client
    env_needs: ClassVar[tuple[EnvNeed, ...]] = (bundled_need("segments of text that go on (text=FILE)", NextSegment),)

    async def __call__(self, group: Group) -> list[float]:
        return await all_of(self._score(rollout) for rollout in group.rollouts)

    async def _score(self, rollout: Rollout) -> float:
        predicted = final_answer(rollout.completion)
        if not predicted:
            return 0.0
        secret = json.loads(rollout.task.answer)
        asked = judgement(self.prompt, answer=f"{secret['next']}\n{secret['after']}", completion=predicted)
        return await judged(self.judge, asked, YES_NO)


def rlpt(
    setting: Setting = Setting(env="next_segment:1+next_segment:2"),
    text: str = "",  # a text file, texts separated by empty lines; empty: sums told in sentences
    judge: str = "rules",  # compares prediction and text (a named part)
    share: float = 0.5,  # missing-sentence tasks per next-sentence task
    warmup_steps: int = BundledOnly(10),  # supervised warm-up steps before RL
) -> Run:
    """Reasoning about plain text, rewarded by the text itself."""
    run = setting.run("rlpt", GroupStandard(), (Clip(),))
    run.warmup = shown(setting, "rlpt", warmup_steps)
    if text:
        wrap_envs(run, lambda env: (replace(env, path=text),) if isinstance(env, NextSegment) else (env,))
    weights = tuple(share if env.level == 2 else 1.0 for env in run.envs)
    run.sampler = Mixture(run.envs, weights, setting.seed)
    run.reward_seconds = reward_seconds(judge)
    run.rewards = (Continued(named_part("judge", judge, setting, None if text else continued)), Earned(weight=0.0))
    return run
