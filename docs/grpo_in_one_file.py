"""GRPO in one file, with torch and numpy alone: what every part of strop does, once, as plainly as possible.

A small recurrent network learns to copy three digits and then to stop. Run it: `python docs/grpo_in_one_file.py`.
The comment over each function names the role that does this work in strop, where it can be exchanged without touching
the others. `tests/docs/test_one_file.py` compares the gradient with strop's on the same batch.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

DIGITS, START, END = 10, 10, 11  # tokens 0 to 9 are digits
ASKED, LONGEST = 3, 6  # digits of a task, tokens of the longest completion
GROUPS, SIZE = 16, 8  # tasks of a step, rollouts of each
CLIP, KL = 0.2, 0.04  # how far a ratio may move, and the weight of staying near the first policy
EPSILON = 1e-6  # keeps the divisor of advantages above 0


@dataclass
class Rollout:
    """One completion to one task, with the logprobs it was really sampled with."""

    prompt: list[int]
    completion: list[int]
    logprobs: list[float]
    reward: float = 0.0
    advantage: float = 0.0


class Policy(nn.Module):
    """What is trained: logits of the next token, for every place of a sequence."""

    def __init__(self, width: int = 96) -> None:
        super().__init__()
        self.words = nn.Embedding(12, width)
        self.memory = nn.GRU(width, width, batch_first=True)
        self.head = nn.Linear(width, 12)

    def forward(self, tokens: Tensor) -> Tensor:  # [B, T] -> [B, T, 12]
        states, _ = self.memory(self.words(tokens))
        return self.head(states)


# Environment and Sampler: where tasks come from, and which is tried next
def tasks(rng: np.random.Generator, count: int) -> list[list[int]]:
    return [[*map(int, rng.integers(0, DIGITS, ASKED)), START] for _ in range(count)]


# Engine: tokens, and the logprob of each under the policy that wrote it
@torch.no_grad()
def sample(policy: Policy, prompts: list[list[int]]) -> list[Rollout]:
    written, kept = torch.tensor(prompts), list[Tensor]()  # [B, T]
    for _ in range(LONGEST):
        logprobs = policy(written)[:, -1].log_softmax(-1)  # [B, 12]
        chosen = torch.multinomial(logprobs.exp(), 1)  # [B, 1]
        kept.append(logprobs.gather(1, chosen))
        written = torch.cat([written, chosen], 1)
    values = torch.cat(kept, 1).tolist()
    completions = written[:, ASKED + 1 :].tolist()
    lengths = [completion.index(END) + 1 if END in completion else LONGEST for completion in completions]
    return [Rollout(p, r[:n], v[:n]) for p, r, v, n in zip(prompts, completions, values, lengths, strict=True)]


# Reward: how good a rollout was, from 0 to 1
def reward(rollout: Rollout) -> float:
    right = [*rollout.prompt[:ASKED], END]
    same = sum(one == other for one, other in zip(rollout.completion, right, strict=False))
    return same / max(len(right), len(rollout.completion))


# Advantage: each rollout against its siblings, in units of their spread
def set_advantages(group: list[Rollout]) -> None:
    rewards = np.array([rollout.reward for rollout in group])
    for rollout in group:
        rollout.advantage = float((rollout.reward - rewards.mean()) / (rewards.std(ddof=1) + EPSILON))


# Trainer, forward: the logprob of every written token under the policy as it is now; 0 behind a completion's end
def logprobs_of(policy: Policy, rollouts: list[Rollout]) -> Tensor:  # [B, LONGEST]
    tokens = torch.tensor(
        [[*a.prompt, *a.completion, *[END] * (LONGEST - len(a.completion))] for a in rollouts]
    )  # [B, T]
    scores = policy(tokens)[:, ASKED:-1].log_softmax(-1)  # [B, LONGEST, 12]
    return scores.gather(2, tokens[:, ASKED + 1 :, None]).squeeze(2) * is_written(rollouts)


def is_written(rollouts: list[Rollout]) -> Tensor:  # [B, LONGEST], 1 where a completion has a token
    return torch.tensor([[float(place < len(a.completion)) for place in range(LONGEST)] for a in rollouts])


# Loss and Reduction: PPO's clip, a penalty for leaving the reference (k3), the mean of every rollout's mean
def loss(policy: Policy, reference: Policy, rollouts: list[Rollout]) -> Tensor:
    new = logprobs_of(policy, rollouts)  # [B, LONGEST], as all below
    sampled = torch.tensor([[*a.logprobs, *[0.0] * (LONGEST - len(a.logprobs))] for a in rollouts])
    with torch.no_grad():
        distant = logprobs_of(reference, rollouts)
    ratio, distance = (new - sampled).exp(), new - distant
    advantage = torch.tensor([[rollout.advantage] for rollout in rollouts])  # [B, 1]
    gain = torch.minimum(ratio * advantage, ratio.clamp(1 - CLIP, 1 + CLIP) * advantage)
    penalty = torch.expm1(-distance) + distance
    written = is_written(rollouts)
    means = ((KL * penalty - gain) * written).sum(1) / written.sum(1)  # [B]
    return means.mean()


def train(steps: int, seed: int = 0) -> list[float]:
    """The pipeline: generate, score, advantage, learn; returns the mean reward of every step."""
    torch.manual_seed(seed)
    rng, policy = np.random.default_rng(seed), Policy()
    reference = copy.deepcopy(policy)
    optimizer = torch.optim.Adam(policy.parameters(), lr=3e-3)
    means = []
    for _ in range(steps):
        rollouts = sample(policy, [task for task in tasks(rng, GROUPS) for _ in range(SIZE)])
        for rollout in rollouts:
            rollout.reward = reward(rollout)
        for first in range(0, len(rollouts), SIZE):
            set_advantages(rollouts[first : first + SIZE])
        optimizer.zero_grad()
        loss(policy, reference, rollouts).backward()
        torch.nn.utils.clip_grad_norm_(policy.parameters(), 1.0)
        optimizer.step()
        means.append(float(np.mean([rollout.reward for rollout in rollouts])))
    return means


if __name__ == "__main__":
    found = train(200)
    for step in range(0, 200, 20):
        print(f"step {step:3d}  mean reward {np.mean(found[step : step + 20]):.2f}")
