"""Several models that learn at once: each moves by the tokens of its own policy name and by no other."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from strop.backends import WeightVersion
from strop.errors import ConfigurationError, DeliveryError
from strop.generate.engines.cpu.torch_engine import TorchEngine
from strop.generate.engines.wrappers.per_policy import EnginePerPolicy
from strop.training.losses.clip import Clip
from strop.training.objective import Objective
from strop.training.pack import pack
from strop.training.reductions.means import TokenMean
from strop.training.requirements import LOGPROBS, PROMPT_HIDDEN, Logits, Logprobs
from strop.training.trainers.torch import TorchTrainer
from strop.training.trainers.trainer_per_policy import TrainerPerPolicy
from strop.types import Group, Rollout, Sampling, Turn
from strop.weights.fingerprint import fingerprint
from tests.building import make_group, turn

POLICIES = ("solver", "critic")


def spoken(policy_name: str, *tokens: int) -> Turn:
    return replace(turn(len(tokens)), tokens=np.array(tokens), sampling=Sampling(policy_name=policy_name), fresh=True)


def team(*turns: tuple[Turn, ...]) -> Group:
    group = make_group([1.0] * len(turns))
    for rollout, own in zip(group.rollouts, turns, strict=True):
        rollout.turns = own
        rollout.set_advantage(1.0)
    return group


def opened(model: Path, policy_names: tuple[str, ...] = POLICIES) -> TrainerPerPolicy:
    trainer = TrainerPerPolicy(policy_names, tuple(TorchTrainer(learning_rate=1e-3) for _ in policy_names))
    trainer.open(model, 0)
    return trainer


def copied(weights: dict[str, Tensor]) -> dict[str, Tensor]:
    return {name: weight.detach().clone() for name, weight in weights.items()}


def moved(before: dict[str, Tensor], after: dict[str, Tensor], policy_name: str) -> bool:
    own = [name for name in before if name.startswith(f"{policy_name}/")]
    assert own
    return any(not torch.equal(before[name], after[name]) for name in own)


OBJECTIVE = Objective((Clip(0.2, 0.2),), None)
BOTH = ((spoken("solver", 5, 6, 7), spoken("critic", 8, 9)), (spoken("critic", 11), spoken("solver", 12, 13)))


def test_a_policies_weights_move_by_its_own_tokens_only(model: Path) -> None:
    """As if a plain trainer had been given its turns alone, each with its share of the whole batch."""
    trainer, alone = opened(model), TorchTrainer(learning_rate=1e-3)
    alone.open(model, 0)
    batches = pack([team(*BOTH)], TokenMean(), 0, 4096)
    own = pack([team(BOTH[0][:1], BOTH[1][1:])], TokenMean(), 0, 4096)  # 5 of the 8 tokens
    for batch in own:
        batch.share = batch.share * 5 / 8
    before = copied(trainer.weights())
    metrics = trainer.step(batches, OBJECTIVE)
    expected = alone.step(own, OBJECTIVE)
    for name, weight in alone.weights().items():
        assert torch.allclose(trainer.weights()[f"solver/{name}"], weight, atol=1e-6), name
    assert moved(before, trainer.weights(), "solver") and moved(before, trainer.weights(), "critic")
    assert metrics["grad_norm/solver"] == pytest.approx(expected["grad_norm"], rel=1e-4)
    assert metrics["grad_norm"] ** 2 == pytest.approx(
        metrics["grad_norm/solver"] ** 2 + metrics["grad_norm/critic"] ** 2
    )
    assert metrics["learning_rate"] == 1e-3, "which does not add up"


def test_whoever_is_silent_stays_and_others_speak_with_the_first(model: Path) -> None:
    trainer = opened(model)
    before = copied(trainer.weights())
    metrics = trainer.step(pack([team((spoken("", 5, 6),))], TokenMean(), 0, 4096), OBJECTIVE)
    assert moved(before, trainer.weights(), "solver") and not moved(before, trainer.weights(), "critic")
    assert "grad_norm/critic" not in metrics
    silent = pack([team((spoken("critic", 5),))], TokenMean(), 0, 4096)
    for batch in silent:
        batch.trainable = torch.zeros_like(batch.trainable)
    with pytest.raises(ConfigurationError, match="at least 1 completion token"):
        trainer.step(silent, OBJECTIVE)


def shaken(trainer: TrainerPerPolicy) -> None:
    """The critic's weights are not the solver's any more."""
    with torch.no_grad():
        for weight in trainer.trainers[1].weights().values():
            weight.mul_(1.5)


def logprobs_of(trainer: TorchTrainer, group: Group) -> list[np.ndarray]:
    trainer.policy_statistic([group], frozenset({LOGPROBS}))
    return [np.split(each.policy_statistics.pop("logprobs"), np.cumsum(sizes(each))[:-1]) for each in group.rollouts]  # type: ignore[return-value]


def sizes(rollout: Rollout) -> list[int]:
    return [len(each.tokens) for each in rollout.turns]


def test_tokens_are_scored_by_whoever_wrote_them(model: Path) -> None:
    trainer, group = opened(model), team(*BOTH)
    shaken(trainer)
    solver, critic = (logprobs_of(each, group) for each in trainer.trainers)  # type: ignore[arg-type]
    trainer.policy_statistic([group], frozenset({LOGPROBS}))
    for number, rollout in enumerate(group.rollouts):
        parts = np.split(rollout.policy_statistics["logprobs"], np.cumsum(sizes(rollout))[:-1])
        for place, each in enumerate(rollout.turns):
            own, other = (solver, critic) if each.sampling.policy_name == "solver" else (critic, solver)
            assert parts[place] == pytest.approx(own[number][place], abs=1e-5)
            assert np.abs(parts[place] - other[number][place]).max() > 1e-3
    (batch,) = pack([group], TokenMean(), 0, 4096)
    trainer.annotate([batch], frozenset({Logprobs("proximal")}))
    noted = np.concatenate([rollout.policy_statistics["logprobs"] for rollout in group.rollouts])
    assert batch.logprobs["proximal"][batch.trainable].numpy() == pytest.approx(noted, abs=1e-5)
    with pytest.raises(ConfigurationError, match="fills logprobs"):
        trainer.annotate([batch], frozenset({Logits("proximal")}))
    with pytest.raises(ConfigurationError, match="one row of a policy statistic per completion token"):
        trainer.policy_statistic([group], frozenset({PROMPT_HIDDEN}))


def test_each_policy_goes_on_from_its_own_folder(model: Path, tmp_path: Path) -> None:
    trainer, again = opened(model), opened(model)
    batches = pack([team(*BOTH)], TokenMean(), 0, 4096)
    trainer.step(batches, OBJECTIVE)
    trainer.save(tmp_path)
    again.resume(tmp_path)
    trainer.step(batches, OBJECTIVE)
    again.step(batches, OBJECTIVE)
    assert fingerprint(trainer.weights()) == fingerprint(again.weights()), "optimizers too"


def test_each_engine_holds_the_weights_of_its_policy(model: Path) -> None:
    trainer, engine = opened(model), EnginePerPolicy(POLICIES, (TorchEngine(), TorchEngine()))
    engine.open(model)
    shaken(trainer)
    weights = trainer.weights()
    version = WeightVersion(1, fingerprint(weights), weights)
    prompt = np.array([3, 4, 5, 6])

    async def said() -> list[np.ndarray]:
        assert await engine.load(version) == version.fingerprint
        asked = [Sampling(policy_name=policy_name, max_tokens=6) for policy_name in ("solver", "critic", "nobody")]
        return [(await engine.sample(prompt, each, 7)).logprobs for each in asked]

    solver, critic, other = asyncio.run(said())
    assert np.array_equal(solver, other) and not np.array_equal(solver, critic)
    with pytest.raises(ConfigurationError, match="no weights were published for policy name 'solver'"):
        asyncio.run(engine.load(WeightVersion(2, "", trainer.trainers[0].weights())))

    class Deaf(TorchEngine):
        async def load(self, version: WeightVersion) -> str:
            return "other"

    deaf = EnginePerPolicy(POLICIES, (TorchEngine(), Deaf()))
    deaf.open(model)
    with pytest.raises(DeliveryError, match="policy name 'critic' holds other"):
        asyncio.run(deaf.load(version))


@pytest.mark.parametrize("policy_names", [(), ("a", "a"), ("a",), ("a", "../b"), ("a", "")])
def test_policies_are_told_apart_by_names(policy_names: tuple[str, ...]) -> None:
    with pytest.raises(ConfigurationError, match="different policy names"):
        TrainerPerPolicy(policy_names, (TorchTrainer(), TorchTrainer()))
    with pytest.raises(ConfigurationError, match="different policy names"):
        EnginePerPolicy(policy_names, (TorchEngine(), TorchEngine()))
