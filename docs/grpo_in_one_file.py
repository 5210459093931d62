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
ASKED, LONGEST = 3, 6  # digits of a task, tokens of the longest reply
GROUPS, SIZE = 16, 8  # tasks of a step, attempts at each
CLIP, KL = 0.2, 0.04  # how far a ratio may move, and the weight of staying near the first policy
EPSILON = 1e-6  # keeps the divisor of advantages above 0


@dataclass
class Attempt:
    """One reply to one task, with the logprobs it was really sampled with."""

    prompt: list[int]
    reply: list[int]
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


# World and Sampler: where tasks come from, and which is tried next
def tasks(chance: np.random.Generator, count: int) -> list[list[int]]:
    return [[*map(int, chance.integers(0, DIGITS, ASKED)), START] for _ in range(count)]


# Engine: tokens, and the logprob of each under the policy that wrote it
@torch.no_grad()
def sample(policy: Policy, prompts: list[list[int]]) -> list[Attempt]:
    written, kept = torch.tensor(prompts), list[Tensor]()  # [B, T]
    for _ in range(LONGEST):
        logprobs = policy(written)[:, -1].log_softmax(-1)  # [B, 12]
        chosen = torch.multinomial(logprobs.exp(), 1)  # [B, 1]
        kept.append(logprobs.gather(1, chosen))
        written = torch.cat([written, chosen], 1)
    values = torch.cat(kept, 1).tolist()
    replies = written[:, ASKED + 1 :].tolist()
    lengths = [reply.index(END) + 1 if END in reply else LONGEST for reply in replies]
    return [Attempt(p, r[:n], v[:n]) for p, r, v, n in zip(prompts, replies, values, lengths, strict=True)]


# Reward: how good an attempt was, from 0 to 1
def reward(attempt: Attempt) -> float:
    right = [*attempt.prompt[:ASKED], END]
    same = sum(one == other for one, other in zip(attempt.reply, right, strict=False))
    return same / max(len(right), len(attempt.reply))


# Advantage: each attempt against its siblings, in units of their spread
def give_credit(group: list[Attempt]) -> None:
    rewards = np.array([attempt.reward for attempt in group])
    for attempt in group:
        attempt.advantage = float((attempt.reward - rewards.mean()) / (rewards.std(ddof=1) + EPSILON))


# Trainer, forward: the logprob of every written token under the policy as it is now; 0 behind a reply's end
def logprobs_of(policy: Policy, attempts: list[Attempt]) -> Tensor:  # [B, LONGEST]
    tokens = torch.tensor([[*a.prompt, *a.reply, *[END] * (LONGEST - len(a.reply))] for a in attempts])  # [B, T]
    scores = policy(tokens)[:, ASKED:-1].log_softmax(-1)  # [B, LONGEST, 12]
    return scores.gather(2, tokens[:, ASKED + 1 :, None]).squeeze(2) * is_written(attempts)


def is_written(attempts: list[Attempt]) -> Tensor:  # [B, LONGEST], 1 where a reply has a token
    return torch.tensor([[float(place < len(a.reply)) for place in range(LONGEST)] for a in attempts])


# Loss and Reduction: PPO's clip, a penalty for leaving the reference (k3), the mean of every attempt's mean
def loss(policy: Policy, reference: Policy, attempts: list[Attempt]) -> Tensor:
    new = logprobs_of(policy, attempts)  # [B, LONGEST], as all below
    sampled = torch.tensor([[*a.logprobs, *[0.0] * (LONGEST - len(a.logprobs))] for a in attempts])
    with torch.no_grad():
        distant = logprobs_of(reference, attempts)
    ratio, distance = (new - sampled).exp(), new - distant
    advantage = torch.tensor([[attempt.advantage] for attempt in attempts])  # [B, 1]
    gain = torch.minimum(ratio * advantage, ratio.clamp(1 - CLIP, 1 + CLIP) * advantage)
    penalty = torch.expm1(-distance) + distance
    written = is_written(attempts)
    means = ((KL * penalty - gain) * written).sum(1) / written.sum(1)  # [B]
    return means.mean()


def train(steps: int, seed: int = 0) -> list[float]:
    """The pipeline: generate, score, credit, learn; returns the mean reward of every step."""
    torch.manual_seed(seed)
    chance, policy = np.random.default_rng(seed), Policy()
    reference = copy.deepcopy(policy)
    optimizer = torch.optim.Adam(policy.parameters(), lr=3e-3)
    means = []
    for _ in range(steps):
        attempts = sample(policy, [task for task in tasks(chance, GROUPS) for _ in range(SIZE)])
        for attempt in attempts:
            attempt.reward = reward(attempt)
        for first in range(0, len(attempts), SIZE):
            give_credit(attempts[first : first + SIZE])
        optimizer.zero_grad()
        loss(policy, reference, attempts).backward()
        torch.nn.utils.clip_grad_norm_(policy.parameters(), 1.0)
        optimizer.step()
        means.append(float(np.mean([attempt.reward for attempt in attempts])))
    return means


if __name__ == "__main__":
    found = train(200)
    for step in range(0, 200, 20):
        print(f"step {step:3d}  mean reward {np.mean(found[step : step + 20]):.2f}")
