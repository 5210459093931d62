"""SFT combined with GRPO: in two stages, interleaved step by step, or by demonstration prefixes that shrink to zero.

Title: The Synergy Dilemma of Long-CoT SFT and RL: Investigating Post-Training Techniques for Reasoning VLMs
Paper: arXiv 2507.07562 (2025)
Claim: None of five combinations beats RL alone (55.1 on average; two stages 51.4, in turns 53.6, progressive 54.9,
    mixed data 54.0, merged 54.3, supervised training alone 51.4).
Reading: In turns: one demonstration per task is held back for a supervised step after the RL step. Progressive:
    rollouts start from a prefix of a demonstration, which gets shorter with the versions and finally empty. Merged
    models are not trained: `merge` interpolates two folders; at the ends of the range it returns
    one of them bit for bit.
Left out: Mixed data, whose second teacher is a model after RL; accuracy by task difficulty for the initial model.
Acts: demonstrations > 0 and teacher/nll > 0 with collected=2
"""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from strop.errors import ConfigurationError, ModelError, nearest
from strop.generate.agents.demonstrator import Demonstrate
from strop.generate.strategies.reverse_curriculum import ReverseCurriculum
from strop.generate.strategies.with_demonstrations import Demonstrated
from strop.models.loading.check_folder import check_model_folder
from strop.recipes.setting import Setting
from strop.recipes.warmup import shown as taught
from strop.replay.fifo import Fifo
from strop.replay.interleaved import Interleaved
from strop.run import Run
from strop.training.advantages.group_relative import GroupStandard
from strop.training.losses.among import Among
from strop.training.losses.clip import Clip
from strop.training.losses.likelihood import Likelihood
from strop.types import Origin


def merge(first: Path, second: Path, share: float, folder: Path) -> Path:
    """Write a model folder with (1 - share) * first + share * second; all but the weights is the first's."""
    if not 0 <= share <= 1:
        raise ConfigurationError(f"a merged model holds a share of the second from 0 to 1, got {share}")
    for each in (first, second):
        check_model_folder(each)
    ours, theirs = _weights(first), _weights(second)
    shapes = [{name: tuple(weight.shape) for name, weight in each.items()} for each in (ours, theirs)]
    if shapes[0] != shapes[1]:
        differing = {name for name, _ in set(shapes[0].items()) ^ set(shapes[1].items())}
        raise ModelError(f"{first} and {second} are built differently: {len(differing)} weights differ in name or size")
    merged = {name: _between(ours[name], theirs[name], share) for name in ours}
    folder.mkdir(parents=True)
    for path in first.iterdir():
        if path.is_file() and not path.name.endswith((".safetensors", ".safetensors.index.json")):
            shutil.copyfile(path, folder / path.name)
    save_file(merged, folder / "model.safetensors", {"format": "pt"})
    return folder


def _between(first: Tensor, second: Tensor, share: float) -> Tensor:
    """The ends are the parents bit for bit."""
    if share in (0, 1):
        return (second if share else first).contiguous()
    return torch.lerp(first.double(), second.double(), share).to(first.dtype).contiguous()


def _weights(folder: Path) -> dict[str, Tensor]:
    found: dict[str, Tensor] = {}
    for path in sorted(folder.glob("model*.safetensors")):
        try:
            found |= load_file(path)
        except (OSError, SafetensorError) as error:
            raise ModelError(f"cannot read the weights in {path}: {error}") from error
    return found


_HOW = ("in_turns", "two_stage", "progressive")
_PLACES = 4  # prefix lengths of a demonstration, from long to short


def synergy_dilemma(
    setting: Setting = Setting(),
    how: str = "in_turns",  # in_turns, two_stage or progressive
    shown: int = 20,  # two_stage: supervised steps before RL
    collected: int = 8,  # in_turns: demonstrations per supervised step
    every: int = 10,  # progressive: versions after which the demonstration prefix gets shorter
) -> Run:
    """GRPO without a KL penalty, combined with demonstrations in one of three ways."""
    if how not in _HOW:
        raise ConfigurationError(f"synergy_dilemma has no how={how!r}: {nearest(how, _HOW)}")
    run = setting.run("synergy_dilemma", GroupStandard(), (Clip(),))
    if how == "two_stage":
        return replace(run, warmup=taught(setting, "synergy_dilemma", shown))
    expert = Demonstrate(least=1.0)
    if how == "progressive":
        return replace(run, strategy=ReverseCurriculum(expert, _PLACES, every))
    return replace(
        run,
        losses=(Among(Clip(), (Origin.POLICY,)), Among(Likelihood(), (Origin.TEACHER,))),
        strategy=Demonstrated(expert),
        buffer=Interleaved(Fifo(), collected),
    )
