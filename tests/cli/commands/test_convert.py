"""`strop convert`: realistic configurations of TRL and verl become commands that a run can be built from."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from strop.cli.commands.convert import convert, converted, read
from strop.cli.fields.arguments import parse_words, refuse_mistyped
from strop.cli.fields.other_libraries import Converted
from strop.cli.fields.overrides import find_recipe, make_run
from strop.errors import ConfigurationError, DataError
from strop.run import Run

TRL_GRPO = """
model_name_or_path: Qwen/Qwen2.5-1.5B-Instruct
dataset_name: openai/gsm8k
dataset_config: main
reward_funcs: [accuracy_reward, my.module.format_reward]
reward_weights: [1.0, 0.2]
output_dir: out
learning_rate: 2e-6
lr_scheduler_type: cosine
max_steps: 300
num_generations: 16
per_device_train_batch_size: 16
gradient_accumulation_steps: 8
max_completion_length: 1024
temperature: 0.9
beta: 0.001
epsilon: 0.2
epsilon_high: 0.28
loss_type: grpo
bf16: true
gradient_checkpointing: true
use_vllm: true
vllm_gpu_memory_utilization: 0.4
logging_steps: 5
save_steps: 50
min_p: 0.05
"""
TRL_DPO = """
model_name_or_path: meta-llama/Llama-3.2-1B-Instruct
dataset_name: pairs.jsonl
learning_rate: 5.0e-7
beta: 0.1
loss_type: sigmoid
label_smoothing: 0.1
per_device_train_batch_size: 4
gradient_accumulation_steps: 8
num_train_epochs: 1
max_length: 2048
use_peft: true
lora_r: 32
output_dir: out
"""
VERL = """
data:
  train_files: gsm8k/train.parquet
  val_files: gsm8k/test.parquet
  train_batch_size: 256
  max_prompt_length: 512
  max_response_length: 1024
actor_rollout_ref:
  model:
    path: Qwen/Qwen2.5-3B-Instruct
  actor:
    optim: {lr: 1e-6}
    ppo_mini_batch_size: 64
    ppo_micro_batch_size_per_gpu: 8
    use_kl_loss: true
    kl_loss_coef: 0.001
    kl_loss_type: low_var_kl
    entropy_coeff: 0.001
    clip_ratio: 0.2
    fsdp_config: {param_offload: false}
  rollout:
    name: vllm
    n: 5
    gpu_memory_utilization: 0.6
    tensor_model_parallel_size: 2
algorithm:
  adv_estimator: grpo
  use_kl_in_reward: false
trainer:
  total_training_steps: 105
  n_gpus_per_node: 8
  save_freq: 20
  test_freq: 5
"""
VERL_SCRIPT = """
python3 -m verl.trainer.main_ppo \\
    algorithm.adv_estimator=gae \\
    data.train_files="$HOME/data/train.parquet" \\
    data.train_batch_size=64 \\
    data.max_response_length=512 \\
    actor_rollout_ref.model.path=Qwen/Qwen2.5-0.5B-Instruct \\
    actor_rollout_ref.actor.optim.lr=1e-6 \\
    actor_rollout_ref.actor.ppo_mini_batch_size=16 \\
    critic.optim.lr=1e-5 \\
    algorithm.lam=0.95 \\
    trainer.total_epochs=3 $@
"""


def of(text: str, place: Path, name: str = "config.yaml") -> Converted:
    path = place / name
    path.write_text(text)
    return converted(read(path))


def built(made: Converted) -> Run:
    """The run of the command, on the bundled model and tasks."""
    typed = parse_words(shlex.split(made.command())[2:])
    refuse_mistyped(typed)
    bundled = {"model": "pocket", "env": "arithmetic:4", "reward": "", "pairs": ""}
    fields = {name: bundled.get(name, value) for name, value in typed.overrides.items()}
    kept = {name: value for name, value in fields.items() if value and not name.startswith("rewards.")}
    return make_run(find_recipe(typed.recipe), kept)


def test_grpo_of_trl(tmp_path: Path) -> None:
    made = of(TRL_GRPO, tmp_path)
    run = built(made)
    assert made.recipe == "grpo" and made.values["env"] == "dataset:openai/gsm8k/main"
    assert made.values["groups_per_step"] == 8 and run.groups_per_step == 8
    assert made.values["reward"] == "rewards.py:accuracy_reward+rewards.py:format_reward"
    assert made.values["kl"] == 0.001 and made.values["losses.0.high"] == 0.28
    assert run.trainer.learning_rate == 2e-6 and run.steps == 300 and run.sampling.max_tokens == 1024
    assert "min_p=0.05" in made.left and "lr_scheduler_type=cosine" in made.left
    assert {"bf16", "use_vllm", "output_dir", "logging_steps"} <= set(made.needless)


def test_dpo_of_trl(tmp_path: Path) -> None:
    made = of(TRL_DPO, tmp_path)
    assert made.recipe == "dpo" and made.values["pairs"] == "given" and made.values["beta"] == 0.1
    assert made.values["groups_per_step"] == 32 and made.values["trainer.lora"] == 32 and made.values["context"] == 2048
    assert made.left == ["label_smoothing=0.1"] and any("num_train_epochs=1" in line for line in made.remarks)
    assert built(made).recipe == "dpo"


def test_grpo_of_verl(tmp_path: Path) -> None:
    made = of(VERL, tmp_path)
    run = built(made)
    assert made.recipe == "grpo" and run.groups_per_step == 256 and made.values["group_size"] == 5
    assert made.values["kl"] == 0.001 and made.values["clip"] == 0.2 and run.steps == 105
    assert any("entropy bonus" in line for line in made.left) and any("test.parquet" in line for line in made.left)
    assert run.minibatches == 4 and run.context == 1536
    assert "trainer.n_gpus_per_node" in made.needless


def test_ppo_of_a_script_of_verl(tmp_path: Path) -> None:
    made = of(VERL_SCRIPT, tmp_path, "run.sh")
    run = built(made)
    assert made.recipe == "ppo" and run.minibatches == 4 and made.values["trace"] == 0.95
    assert "critic.optim.lr=1e-05" in made.left and any("total_epochs=3" in line for line in made.remarks)


@pytest.mark.parametrize(
    ("words", "recipe"),
    [
        ("loss_type: dapo\nepsilon_high: 0.28\nnum_generations: 8", "dapo"),
        ("loss_type: dr_grpo\nnum_generations: 8", "dr_grpo"),
        ("loss_type: cispo\nnum_generations: 8", "cispo"),
        ("loss_type: grpo\nimportance_sampling_level: sequence\nsteps_per_generation: 4", "gspo"),
        ("importance_sampling_level: sequence\nnum_generations: 8\nsteps_per_generation: 4", "gspo"),
        ("loss_type: grpo\nscale_rewards: false\nnum_generations: 8", "dr_grpo"),
        ("loss_type: ipo\nbeta: 0.2", "ipo"),
        ("actor_rollout_ref.actor.policy_loss.loss_mode: gspo\nalgorithm.adv_estimator: grpo", "gspo"),
        ("algorithm.adv_estimator: rloo", "rloo"),
    ],
)
def test_losses_are_recipes(words: str, recipe: str, tmp_path: Path) -> None:
    made = of(words, tmp_path)
    assert made.recipe == recipe and built(made).recipe == recipe


def test_every_field_is_somewhere(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """None is dropped in silence: a field that nobody knows is named with its value."""
    path = tmp_path / "config.yaml"
    path.write_text(TRL_GRPO + "of_tomorrow: 7\n")
    convert(path)
    said = capsys.readouterr().out
    assert said.startswith("strop train grpo ") and "# no counterpart: of_tomorrow=7" in said


def test_what_is_no_such_configuration_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="neither TRL"):
        of("colour: red", tmp_path)
    with pytest.raises(DataError, match="holds no fields"):
        of("- a\n- b", tmp_path)
    with pytest.raises(DataError, match="is no YAML"):
        of("a: [", tmp_path)
    with pytest.raises(ConfigurationError, match="is no file"):
        read(tmp_path / "none.yaml")
