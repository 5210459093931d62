"""The trainer: gradients that no split changes, steps that resume to the bit, and numbers that are refused."""

from __future__ import annotations

import pickle
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import pytest
import torch
from torch import Tensor
from transformers import AutoModelForCausalLM, AutoTokenizer

from strop import recipe
from strop.errors import CheckpointError, ConfigurationError, ModelError, NumericsError
from strop.launch.checks.preflight_all import lay_out_schedule
from strop.roles import Correction, Loss
from strop.training.batch import Batch, Output
from strop.training.losses.clip import Clip
from strop.training.losses.entropy import Entropy
from strop.training.losses.kl import Kl
from strop.training.losses.likelihood import Likelihood
from strop.training.losses.preference_pairs import Dpo
from strop.training.objective import Objective
from strop.training.pack import pack
from strop.training.reductions.means import ConstantLength, SequenceMean, TokenMean
from strop.training.requirements import Logits, Logprobs, Need
from strop.training.trainers.torch import TorchTrainer
from strop.types import Group, Metrics
from tests.training.tiny import opened, random_groups, save_gpt2, save_llama

OBJECTIVE = Objective((Clip(), Entropy(weight=0.1)))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_llama(tmp_path_factory.mktemp("llama"))


def bits(trainer: TorchTrainer) -> dict[str, Tensor]:
    return {name: tensor.clone() for name, tensor in trainer.weights().items()}


def assert_same_bits(one: dict[str, Tensor], other: dict[str, Tensor]) -> None:
    assert one.keys() == other.keys()
    assert all(torch.equal(one[name], other[name]) for name in one)


@pytest.mark.parametrize("reduction", [TokenMean(), SequenceMean(), ConstantLength(32)])
@pytest.mark.parametrize("objective", [OBJECTIVE, Objective((Dpo(), Kl()))])
def test_gradients_and_metrics_are_the_same_for_any_split(
    folder: Path, reduction: TokenMean, objective: Objective
) -> None:
    def trained(max_tokens: int) -> tuple[int, Metrics, dict[str, Tensor]]:
        # every rollout's logprobs differ from the reference, or the preference would have no gradient
        trainer = opened(folder, clip_norm=None, reference=str(folder))
        batches = pack(random_groups(4, 2), reduction, 0, max_tokens, objective.scope)
        trainer.annotate(batches, objective.needs)
        for batch in batches:
            if "reference" in batch.logprobs:
                batch.logprobs["reference"] *= 1.1
        gradients = trainer.gradient(batches, objective)
        return len(batches), trainer.step(batches, objective), gradients

    one, whole, expected = trained(10_000)
    many, split, found = trained(1)
    assert (one, many) == (1, 4 if objective.scope == "group" else 8)
    assert split == pytest.approx(whole, rel=1e-4, abs=1e-6)
    assert expected.keys() == found.keys() == opened(folder).weights().keys()
    for name in expected:
        error = (found[name] - expected[name]).norm() / expected[name].norm()
        assert error < 1e-5, name


def test_the_gradient_is_that_of_the_written_formula(folder: Path) -> None:
    """-sum_t share_t A_t log pi(t), from transformers' own forward pass, one sequence at a time."""
    batches = pack(random_groups(2, 2), SequenceMean(), 0, 40)
    trainer = opened(folder, clip_norm=None)
    gradients = trainer.gradient(batches, Objective((_Plain(),)))
    model = AutoModelForCausalLM.from_pretrained(folder, attn_implementation="eager").eval()
    for batch in batches:
        for segment in batch.segments.unique():
            rows = (batch.segments == segment).nonzero().squeeze(1)
            scores = model(input_ids=batch.tokens[rows].unsqueeze(0), use_cache=False).logits[0, :-1]
            logprobs = (scores / batch.temperature[rows[1:], None]).log_softmax(-1)
            own = logprobs.gather(1, batch.tokens[rows[1:], None]).squeeze(1)
            (-(batch.share * batch.advantages)[rows[1:]] * own).sum().backward()
    expected = {name: tensor.grad for name, tensor in model.named_parameters()}
    for name, wanted in expected.items():
        torch.testing.assert_close(gradients[name], wanted, rtol=1e-4, atol=1e-5)


def test_supervised_training_goes_the_same_way(folder: Path) -> None:
    trainer = opened(folder, warmup_steps=2)
    batches = pack(random_groups(), TokenMean(), 0, 60)
    objective = Objective((Likelihood(),))
    rows = [trainer.step(batches, objective) for _ in range(12)]
    assert rows[-1]["loss"] < rows[0]["loss"] - 1
    assert rows[0]["loss"] == pytest.approx(rows[0]["nll"])
    assert [row["learning_rate"] for row in rows[:3]] == pytest.approx([5e-3, 1e-2, 1e-2])
    trainer.learning_rate = 1e-3
    assert trainer.step(batches, objective)["learning_rate"] == pytest.approx(1e-3)


def test_three_steps_saved_and_three_more_are_six_steps(folder: Path, tmp_path: Path) -> None:
    batches = pack(random_groups(), TokenMean(), 0, 60)
    straight, first, second = (opened(folder, warmup_steps=5, weight_decay=0.1) for _ in range(3))
    expected = [straight.step(batches, OBJECTIVE) for _ in range(6)][3:]
    for _ in range(3):
        first.step(batches, OBJECTIVE)
    first.save(tmp_path)
    second.resume(tmp_path)
    assert [second.step(batches, OBJECTIVE) for _ in range(3)] == expected
    assert_same_bits(bits(second), bits(straight))


def test_a_trainer_saved_before_its_first_step_resumes(folder: Path, tmp_path: Path) -> None:
    batches = pack(random_groups(), TokenMean(), 0, 60)
    straight, saved, resumed = (opened(folder) for _ in range(3))
    saved.save(tmp_path)
    resumed.resume(tmp_path)
    straight.step(batches, OBJECTIVE)
    resumed.step(batches, OBJECTIVE)
    assert_same_bits(bits(resumed), bits(straight))


@pytest.mark.parametrize("is_tied", [False, True])
def test_a_saved_folder_is_a_model_anybody_can_load(is_tied: bool, tmp_path: Path) -> None:
    trainer = opened(save_llama(tmp_path / "source", is_tied=is_tied))
    trainer.step(pack(random_groups(), TokenMean(), 0, 100), OBJECTIVE)
    trainer.save(tmp_path / "saved")
    model = AutoModelForCausalLM.from_pretrained(tmp_path / "saved")
    assert model.config._attn_implementation != "strop"
    assert_same_bits(dict(model.named_parameters()), bits(trainer))
    assert AutoTokenizer.from_pretrained(tmp_path / "saved")("w3 w4")["input_ids"] == [3, 4]
    assert not [path for path in (tmp_path / "saved").iterdir() if path.suffix in (".bin", ".pt", ".pkl")]


@dataclass(frozen=True)
class _Plain(Loss):
    """-A log pi."""

    weight: float = 1.0
    scope: ClassVar[str] = "rollout"

    def __call__(self, output: Output, batch: Batch) -> tuple[Tensor, Metrics]:
        return -batch.advantages * output.logprobs, {}


@dataclass(frozen=True)
class _Explosive(Loss):
    """Finite in value but with an infinite slope at rollouts of the named task, or not finite at all."""

    task: str
    is_finite: bool
    weight: float = 1.0
    scope: ClassVar[str] = "rollout"

    def __call__(self, output: Output, batch: Batch) -> tuple[Tensor, Metrics]:
        bad = batch.on_tokens(torch.tensor([task == self.task for task in batch.task_ids])) & batch.trainable
        rows = bad.nonzero().squeeze(1)
        own = output.logprobs[rows]
        broken = (own - own.detach()).sqrt() if self.is_finite else own * float("nan")  # 0, with an infinite slope
        return (-output.logprobs).index_copy(0, rows, broken), {}


@pytest.mark.parametrize("is_finite", [False, True])
def test_numbers_that_are_not_finite_touch_nothing_and_name_the_tasks(folder: Path, is_finite: bool) -> None:
    trainer, untouched = opened(folder), opened(folder)
    batches = pack(random_groups(4), TokenMean(), 0, 1, scope="group")
    for each in (trainer, untouched):
        each.step(batches, OBJECTIVE)
    before = bits(trainer)
    with pytest.raises(NumericsError, match=r"step 2: .* 1 of 4 batches, with tasks task-2; the weights were not"):
        trainer.step(batches, Objective((_Explosive("task-2", is_finite),)))
    assert_same_bits(bits(trainer), before)
    assert trainer.step(batches, OBJECTIVE) == untouched.step(batches, OBJECTIVE)  # moments are untouched too
    assert_same_bits(bits(trainer), bits(untouched))


def test_reference_stays_and_proximal_moves(folder: Path, tmp_path: Path) -> None:
    trainer = opened(folder)
    batches = pack(random_groups(), TokenMean(), 0, 60)
    both = frozenset({Logprobs("reference"), Logprobs("proximal")})
    trainer.annotate(batches, both)
    first = batches[0].logprobs["reference"]
    torch.testing.assert_close(first, batches[0].logprobs["proximal"])
    trainer.step(batches, OBJECTIVE)
    trainer.save(tmp_path)
    trainer.resume(tmp_path)
    trainer.annotate(batches, both)
    assert torch.equal(batches[0].logprobs["reference"], first)  # also after a resume: the weights it began with
    assert (batches[0].logprobs["proximal"] - first).abs().max() > 1e-3
    assert not batches[0].logprobs["proximal"].requires_grad


def test_metrics_are_means_over_written_tokens_whatever_the_reduction(folder: Path) -> None:
    groups = random_groups()
    found = [
        opened(folder).step(pack(groups, reduction, 0, size), Objective((Clip(),)))
        for reduction, size in ((TokenMean(), 10_000), (ConstantLength(7), 20))
    ]
    for name in ("entropy", "drift", "ratio", "kl_behavior"):
        assert found[0][name] == pytest.approx(found[1][name], rel=1e-5)
    assert found[0]["kl"] == pytest.approx(found[0]["kl_behavior"], rel=1e-5)  # two ways, one number


def test_a_correction_scales_every_token(folder: Path) -> None:
    @dataclass(frozen=True)
    class Half(Correction):
        needs: ClassVar[frozenset[Need]] = frozenset({Logprobs("proximal")})

        def __call__(self, logprobs: Tensor, batch: Batch) -> Tensor:
            return torch.full_like(logprobs, 0.5)

    batches = pack(random_groups(), TokenMean(), 0, 60)
    halved = Objective((_Plain(),), Half())
    assert (halved.needs, halved.scope) == ({Logprobs("proximal")}, "rollout")
    assert Objective((_Plain(), Dpo())).scope == "group"
    whole = opened(folder).step(batches, Objective((_Plain(),)))
    half = opened(folder).step(batches, halved)
    assert half["loss"] == pytest.approx(whole["loss"] / 2)
    assert half["grad_norm"] == pytest.approx(whole["grad_norm"] / 2)
    assert half["correction"] == pytest.approx(0.5)


def test_weights_add_up_and_two_losses_of_a_kind_report_apart(folder: Path) -> None:
    batches = pack(random_groups(), TokenMean(), 0, 60)
    narrow, wide = Clip(0.1, 0.1, weight=2.0), Clip(0.5, 0.5, weight=0.5)
    alone = [opened(folder).step(batches, Objective((loss,))) for loss in (narrow, wide)]
    both = opened(folder).step(batches, Objective((narrow, wide)))
    assert both["loss"] == pytest.approx(alone[0]["loss"] + alone[1]["loss"])
    assert both["clipped_share"] == pytest.approx(alone[0]["clipped_share"])
    assert both["Clip.clipped_share"] == pytest.approx(alone[1]["clipped_share"])
    assert alone[0]["clipped_share"] > alone[1]["clipped_share"]


def test_clipping_bounds_the_gradient(folder: Path) -> None:
    trainer = opened(folder, clip_norm=0.01)
    metrics = trainer.step(pack(random_groups(), TokenMean(), 0, 60), OBJECTIVE)
    assert trainer._opened is not None
    first = [each for name, each in trainer._opened.optimizer.moments().items() if name.endswith("/exp_avg")]
    clipped = torch.stack([each.norm() for each in first]).norm() / 0.1  # 1 - beta of the first step
    assert metrics["grad_norm"] > 0.02
    assert float(clipped) == pytest.approx(0.01, rel=1e-4)


def test_gpt2_trains_too(tmp_path: Path) -> None:
    trainer = opened(save_gpt2(tmp_path))
    batches = pack(random_groups(), TokenMean(), 0, 60)
    losses = [trainer.step(batches, Objective((Likelihood(),)))["loss"] for _ in range(8)]
    assert losses[-1] < losses[0] - 1


def test_misuse_is_refused(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="at least 1 batch, got 0"):
        opened(folder).step([], OBJECTIVE)
    with pytest.raises(ConfigurationError, match="call open"):
        TorchTrainer().weights()
    with pytest.raises(ConfigurationError, match="did you mean float32"):
        TorchTrainer(dtype="float")
    with pytest.raises(ConfigurationError, match="bfloat16 needs a GPU"):
        TorchTrainer(dtype="bfloat16")
    with pytest.raises(ConfigurationError, match="learning_rate > 0, got 0"):
        TorchTrainer(learning_rate=0)
    with pytest.raises(ConfigurationError, match="does not fill logits of old"):
        opened(folder).annotate([], frozenset({Logits("old")}))
    with pytest.raises(ModelError, match="refrence"):
        opened(folder).annotate([], frozenset({Logprobs("refrence")}))
    trainer = opened(folder)
    trainer.save(tmp_path)
    (tmp_path / "trainer.safetensors").write_bytes(b"cut")
    with pytest.raises(CheckpointError, match="trainer"):
        trainer.resume(tmp_path)


def test_a_checkpoint_of_other_moments_is_refused(folder: Path, tmp_path: Path) -> None:
    other = opened(save_llama(tmp_path / "other", layers=1))
    other.step(pack(random_groups(), TokenMean(), 0, 60), OBJECTIVE)
    trainer = opened(folder)
    trainer.step(pack(random_groups(), TokenMean(), 0, 60), OBJECTIVE)
    (tmp_path / "mixed").mkdir()
    other.save(tmp_path / "mixed")
    trainer._opened.model.save_pretrained(tmp_path / "mixed")  # type: ignore[union-attr]
    with pytest.raises(CheckpointError, match="saved 36 moments of 12 parameters, found 36 of 21"):
        trainer.resume(tmp_path / "mixed")


def test_its_settings_travel(folder: Path) -> None:
    trainer = TorchTrainer(learning_rate=3e-4, reference="somewhere")
    assert pickle.loads(pickle.dumps(trainer)) == trainer
    assert eval(repr(opened(folder))) == opened(folder)


def test_groups_drawn_in_another_order_give_the_same_step(folder: Path) -> None:
    groups: list[Group] = random_groups()
    forth, back = (opened(folder).step(pack(each, TokenMean(), 0, 60), OBJECTIVE) for each in (groups, groups[::-1]))
    assert forth == pytest.approx(back, rel=1e-4)


def test_the_learning_rate_rises_and_falls_by_its_schedule() -> None:
    """By hand: 2 steps up, then 4 down to 0 at step 6."""
    shares = {
        "constant": [0.5, 1.0, 1.0, 1.0, 1.0, 1.0],
        "linear": [0.5, 1.0, 1.0, 0.75, 0.5, 0.25],
        "cosine": [0.5, 1.0, 1.0, (1 + 2**-0.5) / 2, 0.5, (1 - 2**-0.5) / 2],
    }
    for schedule, expected in shares.items():
        trainer = TorchTrainer(learning_rate=1.0, warmup_steps=2, schedule=schedule, decay_steps=6)
        assert [trainer.learning_rate_of(step) for step in range(6)] == pytest.approx(expected)
    with pytest.raises(ConfigurationError, match="needs decay_steps"):
        TorchTrainer(schedule="linear").learning_rate_of(0)


def test_a_falling_rate_reaches_0_at_the_end_of_the_run() -> None:
    run = recipe("grpo", steps=10, schedule="linear", minibatches=2)
    lay_out_schedule(run)
    assert isinstance(run.trainer, TorchTrainer) and run.trainer.decay_steps == 20
