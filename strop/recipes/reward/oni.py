"""PPO on the task's sparse reward and on what an adviser, asked while training, thinks of the world's messages.

Title: Online Intrinsic Rewards for Decision Making Agents from Large Language Model Feedback
Paper: arXiv 2410.23022 (2024)
Claim: On tasks of NetHack with sparse rewards as good as rewards learned beforehand from collected data, in one run.
Reading: The form that retrieves labels from a table. Weights 0.4 and 10 are the release's for sparse tasks, the power 3
    of sightings too. Labels count from the step after the one whose draw held the message. Messages are what a store
    behind tool calls says, and a rule that likes whatever is no error stands for the language model; the policy is a
    language model here. PPO's other numbers are ours.
Left out: The forms that classify and rank messages by a model of their own, and labelling on a machine of its own.
Acts: labels > 0 and reward/labelled_messages > 0
"""

from __future__ import annotations

from strop.filter.rewards.conversation.labelled_messages import LabelledMessages
from strop.filter.rewards.env_reward import Earned
from strop.generate.llm_clients.procedural import Procedural
from strop.recipes.setting import Setting
from strop.run import Run
from strop.training.advantages.gae import Gae
from strop.training.losses.clip import Clip
from strop.training.values.critic import Critic


def oni(
    setting: Setting = Setting(world="keyvalue:3"),
    intrinsic: float = 0.4,  # weight of labels
    extrinsic: float = 10.0,  # weight of the task's own reward, which is sparse
    power: float = 3.0,  # of the number of sightings by which a label is divided
    queue: int = 1000,  # messages that may wait for their label
    clip: float = 0.2,  # a token whose ratio left 1 by more gets no gradient
) -> Run:
    """What a message is worth is asked once and remembered."""
    run = setting.run("oni", Gae(), (Clip(clip, clip),), values=Critic(device=setting.device), minibatches=4)
    adviser = Procedural("strop.standins.judges.progress_messages:labelled")
    run.rewards = (Earned(weight=extrinsic), LabelledMessages(adviser, power, queue, weight=intrinsic))
    return run
