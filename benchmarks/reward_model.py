"""How often a reward model that a run here has made prefers the better of two completions it has never seen.

Held-out pairs of each axiom, before and after training on others: `ratio` is the share of right preferences after it.
A tie is half a right one.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path
from typing import Any

from strop.environments.judging.axiomatic_pairs import AXIOMS
from strop.environments.judging.preferences import Preferences, asked_of, completions_of
from strop.generate.reward_model import RewardModel
from strop.launch.running.launch import launch
from strop.models.loading.model_names import model_folder
from strop.recipes.environments import parse_envs
from strop.recipes.reward.axiomatic_preference import axiomatic_preference
from strop.recipes.setting import Setting


def made(env: str, steps: int, pairs: int, device: str, root: Path) -> Path:
    """The folder of a reward model after `steps` of `pairs` pairs, each of a right and a wrong completion."""
    setting = Setting(
        env=env, steps=steps, groups_per_step=pairs, checkpoint_every=max(steps, 1), heldout_every=0, group_size=2,
        learning_rate=1e-3, heldout_tasks=1, device=device,
    )  # fmt: skip
    run = axiomatic_preference(setting, useful=1.0, relevant=0.0, grounded=0.0, evidence=0.0, merged=0.0)
    launch(run, root, "reward_model")
    return root / "reward_model" / "checkpoints" / f"step-{steps}"


def accuracy(folder: Path, env: str, axiom: str, count: int, device: str) -> float:
    """The share of `count` held-out pairs whose better completion has the higher score."""
    (inner,) = parse_envs(env)
    pairs = [Preferences(inner, ((axiom, 1.0),)).task(index, heldout=True) for index in range(count)]
    scores = RewardModel(str(folder), device).scores(
        [(asked_of(p), completion) for p in pairs for completion in completions_of(p)]
    )
    gaps = [better - worse for better, worse in zip(scores[0::2], scores[1::2], strict=True)]
    return sum((gap > 0) + 0.5 * (gap == 0) for gap in gaps) / len(gaps)


def measure(folder: Path, env: str, count: int, device: str) -> dict[str, Any]:
    """Before and after, by axiom; it was trained on the first alone."""
    first = model_folder("pocket")
    rows = [
        {
            "axiom": axiom,
            "before": accuracy(first, env, axiom, count, device),
            "after": accuracy(folder, env, axiom, count, device),
        }
        for axiom in AXIOMS
    ]
    return {"ratio": rows[0]["after"], "env": env, "heldout_pairs": count, "rows": rows}


def table(found: dict[str, Any]) -> str:
    lines = [
        f"{found['heldout_pairs']} held-out pairs of {found['env']}",
        "| axiom | before | after |",
        "|---|---|---|",
    ]
    lines += [f"| {row['axiom']} | {row['before']:.3f} | {row['after']:.3f} |" for row in found["rows"]]
    return "\n".join(lines)


def main(words: list[str] | None = None) -> None:
    from machine import circumstances, output_arguments, publish

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--env", default="arithmetic:2")
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--pairs", type=int, default=48, help="of each step")
    parser.add_argument("--heldout", type=int, default=512, help="pairs that are measured")
    parser.add_argument("--folder", default="", help="a reward model that was made so, to measure it again")
    output_arguments(parser)
    asked = parser.parse_args(words)
    with tempfile.TemporaryDirectory() as root:
        folder = (
            Path(asked.folder) if asked.folder else made(asked.env, asked.steps, asked.pairs, asked.device, Path(root))
        )
        found = measure(folder, asked.env, asked.heldout, asked.device)
    found |= {"steps": asked.steps, "pairs_per_step": asked.pairs, **circumstances(asked.device)}
    publish(found, table(found), asked)


if __name__ == "__main__":
    main()
