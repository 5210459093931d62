"""Command `strop convert`: configurations of TRL (GRPO, DPO) and verl as a strop command.

Every field is carried over, or named as one without a counterpart; none is dropped in silence.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeAlias

from strop.catalogue.record import recipe_files
from strop.cli.fields.other_libraries import ESTIMATORS, FIELDS_OF, NEEDLESS, ONLINE, TRL, TRL_LOSSES, VERL, Converted
from strop.errors import ConfigurationError, DataError

Flat: TypeAlias = dict[str, Any]  # by dotted name


def convert(path: Path) -> None:
    """Print the command, and below it as comments what differs."""
    found = converted(read(path))
    print(found.command())
    for line in found.remarks:
        print(f"# {line}")
    for line in found.left:
        print(f"# no counterpart: {line}")
    if found.needless:
        print(f"# decided by strop itself or of no meaning here: {', '.join(found.needless)}")


def read(path: Path) -> Flat:
    """Fields of a YAML file or of a script's `key=value` words, by dotted name."""
    import yaml

    if not path.is_file():
        raise ConfigurationError(f"{path} is no file: name the YAML file of a TRL or verl run, or its script")
    text = path.read_text(encoding="utf-8")
    if path.suffix in (".sh", ".bash"):
        words = re.findall(r"(?<!\S)\+{0,2}([A-Za-z_][\w.]*)=(\"[^\"]*\"|'[^']*'|[^\s\\]+)", text)
        return {name: yaml.safe_load(value.strip("\"'")) for name, value in words if "." in name}
    try:
        loaded = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise DataError(f"{path} is no YAML: {str(error).splitlines()[0]}") from None
    if not isinstance(loaded, dict):
        raise DataError(f"{path} holds no fields: a configuration is `name: value` in each line")
    return dict(_flat(loaded, ""))


def _flat(node: Mapping[str, Any], before: str) -> list[tuple[str, Any]]:
    pairs = []
    for name, value in node.items():
        pairs += _flat(value, f"{before}{name}.") if isinstance(value, dict) else [(f"{before}{name}", value)]
    return pairs


def converted(given: Flat) -> Converted:
    """The command of a configuration; which library it is of, its fields say."""
    given = {name: _number(value) for name, value in given.items() if value is not None}
    if any(name.startswith(("actor_rollout_ref.", "algorithm.adv_estimator")) for name in given):
        return _of_verl(given)
    if (ONLINE | {"loss_type", "beta"}) & set(given):
        return _of_trl(given)
    raise ConfigurationError(
        "these fields are of neither TRL's GRPOConfig or DPOConfig nor verl (actor_rollout_ref, algorithm): "
        + ", ".join(list(given)[:5])
    )


def _of_trl(given: Flat) -> Converted:
    is_online = bool(ONLINE & set(given))
    loss = str(given.pop("loss_type", "dapo" if is_online else "sigmoid"))
    level = given.pop("importance_sampling_level", "token")
    made = Converted(
        "gspo" if level == "sequence" and is_online else TRL_LOSSES.get(loss, "grpo" if is_online else "dpo")
    )
    if loss not in TRL_LOSSES:
        made.left.append(f"loss_type={loss}: {made.recipe} is taken; `strop recipes` lists other losses")
    _take(made, given, TRL)
    _data(made, given, "dataset_name", "dataset_config", "dataset_train_split")
    _context(made, given.pop("max_prompt_length", None), given.pop("max_length", None))
    if not is_online:
        made.values["pairs"] = "given"
    _trl_batch(made, given, is_online)
    _trl_clip(made, given, is_online)
    _trl_rewards(made, given)
    if (scale := given.pop("scale_rewards", None)) in (False, "none") and made.recipe == "grpo":
        made.recipe = "dr_grpo"
    elif scale == "batch":
        made.recipe = "reinforce_plus_plus"
    if given.pop("use_peft", False):
        made.values["trainer.lora"] = given.pop("lora_r", 16)
    if given.pop("load_in_4bit", False):
        made.values["trainer.base"] = "nf4"
    return _finished(made, given)


def _trl_batch(made: Converted, given: Flat, is_online: bool) -> None:
    """Rollouts of a step: devices are not known here, so one is taken."""
    device, accumulated = given.pop("per_device_train_batch_size", None), given.pop("gradient_accumulation_steps", 1)
    whole = given.pop("generation_batch_size", device * accumulated if device else None)
    size = made.values.get("group_size", 8) if is_online else 1
    if whole:
        made.values["groups_per_step"] = max(int(whole) // int(size), 1)
        what = "rollouts" if is_online else "pairs"
        made.remarks.append(f"groups_per_step is {whole} {what} of one device over {size}: times the devices you had")
    if (epochs := given.pop("num_train_epochs", None)) and "steps" not in made.values:
        made.remarks.append(f"num_train_epochs={epochs}: steps = {epochs} x tasks / groups_per_step; write steps=")


def _trl_clip(made: Converted, given: Flat, is_online: bool) -> None:
    low, high, beta = given.pop("epsilon", None), given.pop("epsilon_high", None), given.pop("beta", None)
    if not is_online:
        made.values["tau" if made.recipe == "ipo" else "beta"] = beta
        return
    _clip(made, low, high)
    made.values["kl"] = beta if beta is not None else 0.0


def _clip(made: Converted, low: Any, high: Any) -> None:
    """Both bounds under the names that a recipe has."""
    if low is None and high is None:
        return
    low = 0.2 if low is None else low
    if made.recipe == "dapo":
        made.values |= {"low": low, "high": low if high is None else high}
    elif made.recipe in ("grpo", "ppo", "reinforce_plus_plus"):
        made.values["clip"] = low
        if high is not None and high != low:
            made.values["losses.0.high"] = high
    else:
        made.left.append(f"clip range {low} to {high or low}: {made.recipe} has its own")


def _trl_rewards(made: Converted, given: Flat) -> None:
    names = given.pop("reward_funcs", None)
    if names:
        words = [str(name) for name in (names if isinstance(names, list) else [names])]
        made.values["reward"] = "+".join(f"rewards.py:{name.rpartition('.')[2]}" for name in words)
        made.remarks.append("reward: put the functions into rewards.py; those of TRL run unchanged")
    weights = given.pop("reward_weights", None)
    for place, weight in enumerate(weights if isinstance(weights, list) else []):
        made.values[f"rewards.{place}.weight"] = weight
    if model := given.pop("reward_model_name_or_path", None):
        made.left.append(f"reward model {model}: `par judge=FOLDER` and `principled_rlhf` are trained with one")


def _of_verl(given: Flat) -> Converted:
    estimator = str(given.pop("algorithm.adv_estimator", "gae"))
    made = Converted(ESTIMATORS.get(estimator, "grpo"))
    if estimator not in ESTIMATORS:
        made.left.append(f"algorithm.adv_estimator={estimator}: grpo is taken; `strop recipes` lists other estimators")
    mode = given.pop("actor_rollout_ref.actor.policy_loss.loss_mode", "vanilla")
    if mode in ("gspo", "cispo"):
        made.recipe = mode
    elif mode != "vanilla":
        made.left.append(f"policy_loss.loss_mode={mode}: the plain clipped loss is taken")
    if given.pop("algorithm.norm_adv_by_std_in_grpo", True) is False and made.recipe == "grpo":
        made.recipe = "dr_grpo"
    is_dapo = given.pop("algorithm.filter_groups.enable", False) or given.pop(
        "reward_model.overlong_buffer.enable", False
    )
    made.recipe = "dapo" if is_dapo and made.recipe == "grpo" else made.recipe
    _take(made, given, VERL)
    _context(made, given.pop("data.max_prompt_length", None), None)
    _verl_data(made, given)
    _verl_losses(made, given)
    if batch := made.values.get("groups_per_step"):
        small = given.pop("actor_rollout_ref.actor.ppo_mini_batch_size", batch)
        made.values["minibatches"] = max(int(batch) // int(small), 1)
    if (epochs := given.pop("trainer.total_epochs", None)) and "steps" not in made.values:
        made.remarks.append(f"trainer.total_epochs={epochs}: steps = {epochs} x tasks / groups_per_step; write steps=")
    return _finished(made, given)


def _verl_data(made: Converted, given: Flat) -> None:
    files = given.pop("data.train_files", None)
    first = files[0] if isinstance(files, list) and files else files
    if first:
        made.values["env"] = first
        made.remarks.append("env: a parquet file of verl is read as it stands (`prompt`, `reward_model.ground_truth`)")
    if held := given.pop("data.val_files", None):
        made.left.append(
            f"data.val_files={held}: a tenth of the prompts is held out; `env=dataset:` takes a test split"
        )
    path, name = (given.pop(f"custom_reward_function.{each}", None) for each in ("path", "name"))
    if path:
        made.values["reward"] = f"{path}:{name or 'compute_score'}"
        made.remarks.append("reward: its parameters solution_str and ground_truth are completion and answer here")


def _verl_losses(made: Converted, given: Flat) -> None:
    actor = "actor_rollout_ref.actor."
    low, high = given.pop(f"{actor}clip_ratio_low", None), given.pop(f"{actor}clip_ratio_high", None)
    _clip(made, given.pop(f"{actor}clip_ratio", low) if low is None else low, high)
    if dual := given.pop(f"{actor}clip_ratio_c", None):
        made.values["losses.0.dual"] = dual
    weight = given.pop(f"{actor}kl_loss_coef", 0.001)
    kind = given.pop(f"{actor}kl_loss_type", "low_var_kl")
    made.values["kl"] = weight if given.pop(f"{actor}use_kl_loss", False) else 0.0
    if kind not in ("low_var_kl", "k3"):
        made.left.append(f"kl_loss_type={kind}: {made.recipe} has the k3 estimator")
    coefficient = given.pop("algorithm.kl_ctrl.kl_coef", 0.0)
    if given.pop("algorithm.use_kl_in_reward", False) and coefficient:
        made.left.append(f"KL of {coefficient} within the reward: `reinforce_plus_plus advantage=tokens` has it")
    if entropy := given.pop(f"{actor}entropy_coeff", 0):
        made.left.append(f"entropy bonus of {entropy}: `entropy_band` holds entropy within a band")
    mean = given.pop(f"{actor}loss_agg_mode", None)
    if mean and (mean == "token-mean") != (made.recipe in ("dapo", "cispo")) and made.recipe in ("grpo", "dapo"):
        made.remarks.append(f"loss_agg_mode={mean}: dapo has the mean over tokens, grpo that over rollouts")


def _take(made: Converted, given: Flat, names: Mapping[str, str]) -> None:
    for theirs, ours in names.items():
        if (value := given.pop(theirs, None)) is not None:
            made.values[ours] = value


def _context(made: Converted, prompt: Any, whole: Any) -> None:
    """Room for prompt and completion together, where both are known."""
    if prompt and (tokens := made.values.get("max_tokens")):
        made.values["context"] = int(prompt) + int(tokens)
    elif whole:
        made.values["context"] = whole


def _data(made: Converted, given: Flat, name: str, table: str, split: str) -> None:
    if data := given.pop(name, None):
        of_table = given.pop(table, None)
        is_file = str(data).endswith((".jsonl", ".json", ".parquet", ".csv"))
        made.values["env"] = data if is_file else "/".join(filter(None, [f"dataset:{data}", of_table]))
    if (train := given.pop(split, None)) and train != "train":
        made.values["splits"] = f"{train},test"


def _finished(made: Converted, given: Flat) -> Converted:
    """Neutral values left out, fields that the recipe lacks and those without a counterpart named."""
    _neutral(made)
    for name, known in FIELDS_OF.items():
        value = made.values.get(name)
        if value is not None and made.recipe not in known:
            del made.values[name]
            if value:
                made.left.append(f"{name}={value}: {made.recipe} has no {name}; {_who(name)}")
    for name, value in given.items():
        (made.needless if NEEDLESS.match(name) else made.left).append(
            name if NEEDLESS.match(name) else f"{name}={value}"
        )
    made.values["device"] = "cuda"
    tokens = made.values.get("max_tokens")
    if tokens and "context" not in made.values:
        made.remarks.append(f"context (prompt and completion) must exceed max_tokens={tokens}: set context=")
    assert made.recipe in recipe_files()
    return made


def _neutral(made: Converted) -> None:
    """Values that mean "off" there and need not be said here."""
    off: dict[str, Callable[[Any], bool]] = {
        "steps": lambda value: value < 0,
        "sampling.top_k": lambda value: value <= 0,
        "sampling.top_p": lambda value: value == 1,
        "trainer.lora": lambda value: value == 0,
        "checkpoint_every": lambda value: value <= 0,
        "heldout_every": lambda value: value < 0,
        "trainer.warmup_steps": lambda value: value <= 0,
    }
    for name, is_off in off.items():
        if name in made.values and is_off(made.values[name]):
            del made.values[name]


def _who(name: str) -> str:
    return f"{', '.join(sorted(FIELDS_OF[name]))} {'has' if len(FIELDS_OF[name]) == 1 else 'have'}"


def _number(value: Any) -> Any:
    """YAML reads 1e-6 as text."""
    if isinstance(value, str) and re.fullmatch(r"[-+]?\d+(\.\d*)?([eE][-+]?\d+)?", value):
        return float(value) if re.search(r"[.eE]", value) else int(value)
    return value
