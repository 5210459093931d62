"""AMFT: one loss of SFT and GRPO whose mixing weight is meta-learned from the reward gradient on held-back groups.

Title: AMFT: Aligning LLM Reasoners by Meta-Learning the Optimal Imitation-Exploration Balance
Paper: arXiv 2508.06944 (2025)
Claim: Better than supervised training, RL and their sequence; its authors asked to withdraw the paper while it is
    investigated, so its numbers are not used here.
Reading: A group holds one demonstration and the policy's rollouts; the demonstration's reward counts in the group mean.
    One of four groups is not trained on; the reward gradient of its rollouts shows which of the two losses helps. Rates
    and bounds were not found. The weight of imitation rises while entropy is above its first value, as in the paper's
    text.
Left out: The critic; advantages are relative to the group.
Acts: mu != 0.5 and meta_gradient != 0 with warmup_steps=1
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import torch
from torch import Tensor

from strop.backends import Objective as Aim
from strop.errors import CheckpointError, ConfigurationError
from strop.generate.agents.demonstrator import Demonstrate
from strop.generate.strategies.with_demonstrations import Demonstrated
from strop.recipes.setting import Setting
from strop.recipes.warmup import shown
from strop.roles import Trainer
from strop.run import Run
from strop.training.advantages.group_relative import GroupStandard
from strop.training.batch import Batch, Output
from strop.training.losses.among import Among
from strop.training.losses.clip import Clip
from strop.training.losses.likelihood import Likelihood
from strop.training.objective import Objective
from strop.training.requirements import Need, PolicyStatistic
from strop.training.trainers.torch import TorchTrainer
from strop.types import Group, Metrics, Origin

# AMFT's meta-learned mixture (2508.06944) of imitation and exploration.
#
# Readings: every few groups of a batch are held back; the gradient of the expected reward is estimated from their
# rollouts, with the group mean as the baseline. Gradients are divided by their norms. In the paper's text imitation
# rises while entropy is above its first value; its printed formula has the opposite sign (`printed`).

_FILE = "meta_mixed.json"


@dataclass
class MetaMixed(Trainer):
    """Trainer that minimizes (1 - mu) * the first of two losses + mu * the second, and adapts mu.

    After each step mu <- mu + rate * (-u . (s - r)) + entropy_rate * (H - first H), clamped to bounds: u, s and r are
    unit vectors along the gradients of minus the expected reward on held-back groups, of imitation and of RL.
    """

    inner: TorchTrainer
    mu: float = 0.5  # initial weight of imitation
    rate: float = 0.1  # learning rate of mu from the reward gradient
    entropy_rate: float = 0.01  # learning rate of mu from the entropy
    bounds: tuple[float, float] = (0.05, 0.95)  # of mu
    every: int = 4  # one of `every` groups is held back
    printed: bool = False  # use the sign of the entropy term in the paper's formula

    _now: dict[str, float] = field(default_factory=dict, init=False, repr=False, compare=False)  # mu and first entropy

    def __post_init__(self) -> None:
        if not 0 <= self.bounds[0] <= self.mu <= self.bounds[1] <= 1 or self.every < 2:
            raise ConfigurationError(
                f"MetaMixed needs 0 <= bounds <= 1 around mu and every >= 2, got {self.bounds}, {self.mu}, {self.every}"
            )

    def problems(self, run: Run) -> list[str]:
        few = run.groups_per_step < self.every * run.minibatches
        problem = f"1 of {self.every} groups is held back: need groups_per_step >= {self.every * run.minibatches}"
        wrong = f"MetaMixed needs exactly 2 losses, got {len(run.losses)}"
        return [wrong] * (len(run.losses) != 2) + [f"{problem}, got {run.groups_per_step}"] * few

    @property
    def max_tokens(self) -> int:
        return self.inner.max_tokens

    def open(self, model: Path, seed: int) -> None:
        self.inner.open(model, seed)
        self._now = {"mu": self.mu}

    def policy_statistic(self, groups: Sequence[Group], needs: frozenset[PolicyStatistic]) -> None:
        self.inner.policy_statistic(groups, needs)

    def annotate(self, batches: Sequence[Batch], needs: frozenset[Need]) -> None:
        self.inner.annotate(batches, needs)

    def step(self, batches: Sequence[Batch], objective: Aim) -> Metrics:
        assert isinstance(objective, Objective)
        explore, imitate = (Objective((loss,), objective.correction) for loss in objective.losses)
        trained, held = ([_part(batch, self.every, is_held) for batch in batches] for is_held in (False, True))
        count = sum(int(batch.trainable.sum()) for batch in trained)
        trained = [replace(batch, step_tokens=count) for batch in trained]  # or metrics would count held-back tokens
        slope = 0.0
        if any(bool(batch.trainable.any()) for batch in held):
            reward, copied, explored = (
                unit(self.inner.gradient(*each)) for each in ((held, _reward), (trained, imitate), (trained, explore))
            )
            slope = meta_gradient(reward, copied, explored)
        mu = self._now["mu"]
        metrics = self.inner.step(trained, _mixed(explore, imitate, mu))
        self._learn(slope, metrics["entropy"])
        return metrics | {"mu": mu, "meta_gradient": slope}

    def _learn(self, slope: float, entropy: float) -> None:
        more = entropy - self._now.setdefault("entropy", entropy)
        mu = self._now["mu"] + self.rate * slope + self.entropy_rate * (-more if self.printed else more)
        self._now["mu"] = min(max(mu, self.bounds[0]), self.bounds[1])

    def weights(self) -> dict[str, Tensor]:
        return self.inner.weights()

    def save(self, folder: Path) -> None:
        self.inner.save(folder)
        (folder / _FILE).write_text(json.dumps(self._now) + "\n")

    def resume(self, folder: Path) -> None:
        self.inner.resume(folder)
        try:
            self._now = {name: float(value) for name, value in json.loads((folder / _FILE).read_text()).items()}
        except (OSError, ValueError, AttributeError, TypeError) as error:
            raise CheckpointError(f"cannot read the mixing weight in {folder / _FILE}: {error}") from error


def meta_gradient(
    loss: Mapping[str, Tensor], imitation: Mapping[str, Tensor], exploration: Mapping[str, Tensor], rate: float = 1.0
) -> float:
    """dU / dmu = -rate * grad U . (grad imitation - grad exploration), `loss` being the gradient of -U."""
    found = [(loss[name] * (imitation[name] - exploration[name])).sum() for name in loss]
    return rate * float(torch.stack(found).sum())


def unit(gradient: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The gradient divided by its norm; 0 stays 0."""
    norm = torch.stack([each.square().sum() for each in gradient.values()]).sum().sqrt().clamp(min=1e-12)
    return {name: each / norm for name, each in gradient.items()}


def _part(batch: Batch, every: int, is_held: bool) -> Batch:
    """The batch with only held-back groups trainable (numbers that are multiples of `every`), or only the others."""
    held = torch.tensor([number % every == 0 for number in batch.group_numbers], device=batch.groups.device)
    return replace(batch, trainable=batch.trainable & (batch.on_tokens(held[batch.groups]) == is_held))


def _reward(output: Output, batch: Batch) -> tuple[Tensor, Metrics]:
    """Surrogate loss whose gradient is that of minus the expected reward, on the policy's own rollouts."""
    own = batch.trainable & batch.on_tokens(batch.is_of(Origin.POLICY))
    pushed = -batch.advantages * output.logprobs
    return (batch.share * pushed.where(own, pushed.new_zeros(()))).sum(), {}


def _mixed(explore: Aim, imitate: Aim, mu: float) -> Aim:
    def loss(output: Output, batch: Batch) -> tuple[Tensor, Metrics]:
        (first, metrics), (second, others) = explore(output, batch), imitate(output, batch)
        return (1 - mu) * first + mu * second, metrics | others

    return loss


def amft(
    setting: Setting = Setting(env="arithmetic:6"),
    mu: float = 0.5,  # initial weight of imitation
    rate: float = 0.1,  # learning rate of mu from held-back groups
    entropy_rate: float = 0.01,  # learning rate of mu from the entropy
    printed: bool = False,  # the entropy sign of the paper's formula, which contradicts its text
    warmup_steps: int = 4,  # steps of supervised warm-up
) -> Run:
    """One optimizer step per batch on a mixture of both losses; its weight is learned."""
    run = setting.run(
        "amft",
        GroupStandard(),
        (Among(Clip(0.2, 0.2), (Origin.POLICY,)), Among(Likelihood(), (Origin.TEACHER,))),
        strategy=Demonstrated(Demonstrate()),
        trainer=MetaMixed(
            TorchTrainer(setting.learning_rate, device=setting.device), mu, rate, entropy_rate, printed=printed
        ),
    )
    run.warmup = shown(setting, "amft", warmup_steps)
    return run
