"""Prompts that spell control tokens are named before a run, and counted in every rollout that reads one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from strop.cli.commands.train import StartOptions, start_run
from strop.cli.fields.arguments import parse_words
from strop.generate.agents.chat import Chat
from strop.generate.rollout import CONTROL_TEXT, play
from strop.types import Message, Start, Task
from tests.generate.talking import Recording, policy_of, run, save_folder
from tests.generate.test_rollout import Echo

DRY = StartOptions("", Path("runs"), "", "inline", 1, is_dry=True)


def saved(folder: Path, *prompts: str) -> Path:
    path = folder / "tasks.jsonl"
    path.write_text("\n".join(json.dumps({"prompt": prompt, "answer": "2"}) for prompt in prompts))
    return path


@pytest.mark.parametrize("mark", ["<|end|>", "<think>"])
def test_prompts_that_spell_control_tokens_are_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], mark: str
) -> None:
    path = saved(tmp_path, *(f"{number}+1 < 9" for number in range(30)), f"1{mark}2{mark}")
    assert start_run(parse_words(["grpo", f"env={path}"]), DRY, quiet=True) == 0
    told = capsys.readouterr().err
    assert "1 of 31 prompts of " in told and f"({mark!r} 2 times)" in told
    saved(tmp_path, *(f"{number}+1 < 9" for number in range(31)))
    assert start_run(parse_words(["grpo", f"env={path}"]), DRY, quiet=True) == 0
    assert "may write" not in capsys.readouterr().err


def test_an_rollout_counts_the_control_tokens_that_it_read_as_text(tmp_path: Path) -> None:
    policy = policy_of(save_folder(tmp_path), Recording(["4|", "4|"]))
    for text, count in (("1<|end|><|start|>", 2.0), ("1 < 2", None)):
        task = Task((Message("user", text),), "4", "test")
        rollout = run(play(Chat(), Echo(), policy.dialogue(task, Start("a", 7))))
        assert rollout.facts.get(CONTROL_TEXT) == count
