"""Wrong commands and wrong Python calls: each is answered in one or two sentences that name what to do."""

from __future__ import annotations

import json
import re
import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import strop as package
from strop import cli
from strop.errors import StropError
from tests.observe.folders import run_folder

# what is typed after `strop`, and what the answer names
FIELDS = """
train grpo lr=1e-4 => learning_rate
train grpo beta=0.1 => kl
train grpo kl_coef=0.1 => kl
train grpo num_generations=8 => group_size
train grpo rollout_n=8 => group_size
train grpo batch_size=8 => groups_per_step
train grpo train_batch_size=8 => groups_per_step
train grpo per_device_train_batch_size=8 => groups_per_step
train grpo max_new_tokens=64 => max_tokens
train grpo max_completion_length=64 => max_tokens
train grpo max_response_length=64 => max_tokens
train grpo max_seq_length=512 => context
train grpo max_prompt_length=512 => context
train grpo num_train_epochs=3 => steps
train grpo total_epochs=3 => steps
train grpo max_steps=3 => steps
train grpo num_iterations=2 => epochs
train grpo ppo_epochs=2 => epochs
train grpo ppo_mini_batch_size=2 => minibatches
train grpo epsilon=0.2 => clip
train grpo clip_ratio=0.2 => clip
train grpo max_grad_norm=1 => trainer.clip_norm
train grpo gradient_accumulation_steps=4 => trainer.max_tokens
train grpo gradient_checkpointing=true => trainer.checkpointing
train grpo lora_rank=16 => trainer.lora
train grpo peft_config=x => trainer.lora
train grpo reward_funcs=a.py:f => reward
train grpo dataset=a.jsonl => env
train grpo train_files=a.jsonl => env
train grpo model_name_or_path=x => model
train grpo system_prompt=x => system
train grpo stop_strings=x => stop
train grpo enable_thinking=false => template_arguments
train grpo chat_template_kwargs=x => template_arguments
train grpo lr_scheduler_type=cosine => schedule
train grpo save_steps=5 => checkpoint_every
train grpo save_total_limit=2 => keep_checkpoints
train grpo eval_steps=5 => heldout_every
train grpo report_to=wandb => --track
train grpo run_name=x => --name
train grpo output_dir=x => --name
train grpo use_vllm=true => engine
train grpo max_staleness=1 => lag
train grpo n_gpus=2 => ranks
train grpo --lr 1e-4 => learning_rate
train grpo --batch-size 8 => groups_per_step
train grpo stepz=3 => steps
train grpo temprature=1 => temperature
train grop => grpo
train GRPOO => grpo
train dr-grp => dr_grpo
train nothing_like_it => did you mean
train grpo ppo => the recipe is already grpo
train nothing.py => no recipe file nothing.py
"""
VALUES = """
train grpo steps=abc => whole number
train grpo steps=2.5 => whole number
train grpo learning_rate=fast => a number
train grpo schedule=step => constant, linear, cosine
train grpo answer=boxd => one of
train grpo engine=sglang => own, vllm
train grpo steps=-1 => steps >= 0
train grpo group_size=1 => set group_size
train grpo group_size=0 => set group_size
train grpo max_tokens=0 => max_tokens >= 1
train grpo temperature=-1 => temperature >= 0
train grpo temperature=0 => raise it
train grpo sampling.top_p=2 => top_p <= 1
train grpo sampling.top_k=-3 => top_k >= 1
train grpo max_tokens=900 => raise context
train grpo context=100000 => positions
train grpo minibatches=99 => minibatches=
train grpo threads=100000 => at most
train grpo seed=-1 => need 0 <= seed
train grpo learning_rate=0 => learning_rate > 0
train grpo trainer.lora=-1 => lora >= 1
train grpo trainer.dtype=float64 => float32
train grpo trainer=adam => set its fields
train grpo device=tpu => device
train grpo weight_decay=0.1 => trainer.weight_decay
train grpo env=nothing.jsonl => does not exist
train grpo env=empty.jsonl => empty.jsonl
train grpo env=broken.jsonl => broken.jsonl:2
train grpo env=null.jsonl => null.jsonl:1
train grpo env=frage.jsonl => columns=frage,loesung
train grpo env=frage.csv => columns=frage,loesung
train grpo env=tasks.jsonl columns=ask,say => there is no column 'ask'
train grpo env=arithmetik:2 => arithmetic
train grpo env=arithmetic:x => whole number
train grpo env=own.py:Nothing => did you mean
train grpo env=nothing.py:Env => there is no file
train grpo env=own.py:good => must need no arguments
train grpo answer=boxed => task files only
train grpo system=hi => tables of tasks
train grpo env=tasks.jsonl chat_template=nothing => chatml
train grpo env=tasks.jsonl chat_template=chatml => chat_template=plain
train grpo env=tasks.jsonl template_arguments=thinking => NAME=VALUE
train grpo env=tasks.jsonl reward=own.py => FILE.py:FUNCTION
train grpo env=tasks.jsonl reward=nothing.py:good => there is no file
train grpo env=tasks.jsonl reward=own.py:god => good
train grpo env=tasks.jsonl reward=broken.py:good => line 1
train grpo env=tasks.jsonl reward=own.py:good success=other => valid: good
train grpo env=tasks.jsonl reward=own.py:good reward_range=1 => LOW,HIGH
train grpo model=nothing => does not exist
train grpo model=. => no config.json
train grpo model=nothing/of-the-hub => hub
train grpo --track wanb => wandb
train grpo --place moon => inline
train grpo --name a/b => letters, digits
train grpo --engines 0 => engines
"""
RUNS = """
train --resume nothing => is not a run folder
train --resume run learning_rate=1 => model=run
train --resume run steps=abc => only steps=NUMBER
train --resume run steps=1 => go on with that version
show nothing => nothing
show run 77/7 => 77/7
show run --step 99 => steps 1 to
show run --by colour => none, advantage
eval nothing => nothing
doctor nothing => is not a run folder
diagnose nothing => not a folder
export run => -o FOLDER
export nothing --push model => nothing
export nothing -o x => nothing
replay nothing => nothing
watch nothing => not a folder
serve nothing => nothing
papers nothing => did you mean
recipes zzzz => no class or recipe matches
attack nothing => did you mean
trian grpo => train
"""
PROBED = """
train grpo env=long.jsonl => set context=
train grpo env=tasks.jsonl reward=own.py:raising => own.py, line 6
train grpo env=tasks.jsonl reward=own.py:missing => asks for 'unit'
train grpo env=tasks.jsonl reward=own.py:constant => pays right and wrong answers alike
train grpo env=tasks.jsonl reward=own.py:text => need a number
train grpo env=tasks.jsonl reward=own.py:imports => No module named
"""
OWN = """def good(completion, answer):
    return float(completion.strip().endswith(answer))


def raising(completion):
    return {}["x"]


def missing(completion, unit):
    return 1.0


def constant(completion):
    return 0.5


def text(completion):
    return "1"


def imports(completion):
    import nowhere_at_all

    return 1.0
"""


def table(text: str) -> list[tuple[str, str]]:
    return [tuple(line.split(" => ")) for line in text.strip().splitlines()]  # type: ignore[misc]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Files that are right, files that are wrong, and a run."""
    folder = tmp_path_factory.mktemp("wrong")
    rows = [{"prompt": f"{n}+1=?", "answer": str(n + 1)} for n in range(40)]
    files = {
        "tasks.jsonl": "\n".join(map(json.dumps, rows)),
        "long.jsonl": "\n".join(json.dumps({"prompt": "word " * 900 + str(n), "answer": "1"}) for n in range(20)),
        "empty.jsonl": "",
        "broken.jsonl": '{"prompt": "1", "answer": "1"}\n{"prompt": ',
        "null.jsonl": '{"prompt": "1", "answer": null}',
        "frage.jsonl": '{"frage": "1", "loesung": "1"}',
        "frage.csv": "frage,loesung\n1,1\n",
        "own.py": OWN,
        "broken.py": "def good(:",
    }
    for name, content in files.items():
        (folder / name).write_text(content)
    run_folder(folder / "run", steps=3)
    return folder


@pytest.fixture
def typed(folder: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Callable[[str], str]:
    """The answer to a command that is refused."""
    monkeypatch.chdir(folder)
    monkeypatch.setenv("COLUMNS", "500")
    monkeypatch.setattr(sys, "path", list(sys.path))

    def answered(command: str) -> str:
        dry = ["--dry-run"] if command.startswith("train grpo") else []
        monkeypatch.setattr(sys, "argv", ["strop", *shlex.split(command), *dry])
        with pytest.raises(SystemExit) as end:
            cli.main()
        told = capfd.readouterr().err
        assert end.value.code in (1, 2), told
        return told

    return answered


def check(command: str, named: str, told: str) -> None:
    """Few sentences, no traceback, and what to do."""
    assert "Traceback" not in told, (command, told)
    assert "\nerror: " in f"\n{told}" or "Usage" in told, (command, told)
    told = told[max(f"\n{told}".rfind("\nerror: "), 0) :]  # behind warnings
    assert named.lower() in told.lower(), f"{command}: {told}"
    if told.startswith("error: "):
        sentences = re.split(r"(?<=[a-z)'\"`])\. (?=[A-Z])", told.strip())
        assert len(sentences) <= 2 and told.count("\n") <= 2, f"{command}: {told}"


@pytest.mark.parametrize(("command", "named"), table(FIELDS))
def test_a_wrong_field_or_recipe_names_the_right_one(typed: Callable[[str], str], command: str, named: str) -> None:
    check(command, named, typed(command))


@pytest.mark.parametrize(("command", "named"), table(VALUES))
def test_a_wrong_value_names_what_would_be_right(typed: Callable[[str], str], command: str, named: str) -> None:
    check(command, named, typed(command))


@pytest.mark.parametrize(("command", "named"), table(RUNS))
def test_a_wrong_run_or_word_is_said(typed: Callable[[str], str], command: str, named: str) -> None:
    check(command, named, typed(command))


@pytest.mark.slow
@pytest.mark.parametrize(("command", "named"), table(PROBED))
def test_a_run_that_its_rehearsal_refuses(typed: Callable[[str], str], command: str, named: str) -> None:
    check(command, named, typed(command))


def test_there_are_as_many_as_were_promised() -> None:
    assert sum(len(table(text)) for text in (FIELDS, VALUES, RUNS, PROBED)) >= 120 and len(CALLS) >= 40


ROWS = [{"prompt": "1+1=?", "answer": 2}]
CALLS: list[tuple[dict[str, Any], str]] = [
    ({"learning_rate": "1e-4"}, "leave out the quotes"),
    ({"learning_rate": None}, "a number"),
    ({"learning_rate": [1e-4]}, "a number"),
    ({"steps": 2.5}, "a whole number"),
    ({"steps": "10"}, "leave out the quotes"),
    ({"steps": True}, "a whole number"),
    ({"steps": None}, "a whole number"),
    ({"group_size": 8.0}, "a whole number"),
    ({"group_size": "8"}, "a whole number"),
    ({"groups_per_step": "8"}, "a whole number"),
    ({"max_tokens": 64.5}, "a whole number"),
    ({"temperature": "hot"}, "a number"),
    ({"seed": "0"}, "a whole number"),
    ({"seed": 1.5}, "a whole number"),
    ({"model": 7}, "text"),
    ({"model": None}, "text"),
    ({"device": 0}, "text"),
    ({"engine": "sglang"}, "own, vllm"),
    ({"answer": "boxd"}, "one of"),
    ({"schedule": "step"}, "constant"),
    ({"isolation": "docker"}, "sandbox"),
    ({"context": "512"}, "a whole number"),
    ({"minibatches": 1.5}, "a whole number"),
    ({"streams": "yes"}, "True or False"),
    ({"epochs": None}, "a whole number"),
    ({"reward": 3}, "a function made with def"),
    ({"reward": None}, "a function made with def"),
    ({"reward": []}, "empty list"),
    ({"reward": lambda completion: 1.0}, "lambda"),
    ({"reward": [3]}, "a function made with def"),
    ({"reward": print}, "a function made with def"),
    ({"reward": "good"}, "FILE.py:FUNCTION"),
    ({"env": 3}, "a list of dicts"),
    ({"env": None}, "a list of dicts"),
    ({"env": []}, "no rows"),
    ({"env": [1, 2]}, "a row of type int"),
    ({"env": [{"frage": "1", "loesung": "1"}]}, "columns=frage,loesung"),
    ({"env": [{"prompt": 3, "answer": "1"}]}, "must be text"),
    ({"env": [{"prompt": "1", "answer": object()}]}, "JSON"),
    ({"env": ROWS, "columns": ("a", "b")}, "no column 'a'"),
    ({"env": "nothing.jsonl"}, "does not exist"),
    ({"lr": 1e-4}, "learning_rate"),
    ({"num_generations": 8}, "group_size"),
    ({"stepz": 8}, "steps"),
]


@pytest.mark.parametrize(("fields", "named"), CALLS)
def test_a_wrong_call_is_one_sentence(
    fields: dict[str, Any], named: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    with pytest.raises(StropError) as refused:
        run = package.recipe("grpo", **fields)
        [env.task(0) for env in run.envs]
    assert named in str(refused.value) and str(refused.value).count("\n") == 0, str(refused.value)


def test_wrong_names_of_recipes_and_runs() -> None:
    for wrong, named in ((3, "a name such as 'grpo'"), ("grop", "grpo"), ("", "no recipe")):
        with pytest.raises(StropError, match=named):
            package.recipe(wrong)  # type: ignore[arg-type]
    with pytest.raises(StropError, match="a Run or the folder of one"):
        package.train(3)  # type: ignore[arg-type]
