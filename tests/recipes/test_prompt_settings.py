"""System prompts, chat templates and their arguments: what a model reads, and where its completions end."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from strop import recipe
from strop.errors import ConfigurationError
from strop.generate.templates.chat_template import Template
from strop.launch.checks.preflight_all import first_prompt
from strop.launch.checks.warnings import warnings_of
from strop.recipes.model_paths import with_template
from strop.training.trainers.torch import TorchTrainer
from strop.types import Message
from tests.tiny_models import save_pocket_like

ASKED = (Message("user", "2+2=?"),)


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def tasks(folder: Path) -> str:
    rows = [{"prompt": f"{n}+1=?", "answer": str(n + 1)} for n in range(20)]
    (folder / "t.jsonl").write_text("\n".join(map(json.dumps, rows)))
    return str(folder / "t.jsonl")


def test_a_system_prompt_stands_before_every_prompt_and_changes_no_split(tmp_path: Path) -> None:
    file = tasks(tmp_path)
    (tmp_path / "terse.txt").write_text("Be terse.\n")
    plain, told = recipe("grpo", env=file), recipe("grpo", env=file, system=str(tmp_path / "terse.txt"))
    for heldout in (False, True):
        task = told.envs[0].task(0, heldout)
        assert task.messages[0] == Message("system", "Be terse.") and task.id == plain.envs[0].task(0, heldout).id
    assert "Be terse." in first_prompt(told) and "<|system|>" in first_prompt(told)
    with pytest.raises(ConfigurationError, match="system= applies to tables"):
        recipe("grpo", env="arithmetic:2", system="Be terse.")


def test_a_model_without_template_takes_the_plain_one_and_ends_with_its_end_of_text(tmp_path: Path) -> None:
    folder = save_pocket_like(tmp_path / "model")
    for name in ("chat_template.jinja", "chat_template.json"):
        (folder / name).unlink(missing_ok=True)
    told = json.loads((folder / "tokenizer_config.json").read_text())
    told.pop("chat_template", None)
    (folder / "tokenizer_config.json").write_text(json.dumps(told))
    template = Template.load(Path(with_template(str(folder), "plain")))
    assert template.decode(template.opening(ASKED)) == "User: 2+2=?\n\nAssistant:"
    assert template.end == template.tokenizer.eos_token_id
    with pytest.raises(ConfigurationError, match="chat_template=plain"):
        with_template(str(folder), "chatml")


def test_arguments_are_set_in_the_template_and_saved_with_it(tmp_path: Path) -> None:
    file = tmp_path / "t.jinja"
    file.write_text(
        "{% for m in messages %}<|{{ m['role'] }}|>{{ m['content'] }}<|end|>{% endfor %}"
        "{% if add_generation_prompt %}<|assistant|>{% if thinking is defined and thinking %}hm{% endif %}{% endif %}"
    )
    plain, asked = (with_template("pocket", str(file), each) for each in ((), ("thinking=true",)))
    shown = [Template.load(Path(each)).decode(Template.load(Path(each)).opening(ASKED)) for each in (plain, asked)]
    assert shown[1] == f"{shown[0]}hm" and plain != asked
    assert with_template("pocket", "") == "pocket"
    with pytest.raises(ConfigurationError, match="NAME=VALUE"):
        with_template("pocket", "", ("thinking",))


def test_stop_texts_end_completions() -> None:
    assert recipe("grpo", stop=["\\n\\n", "END"]).sampling.stop == ("\n\n", "END")


def test_copies_of_prompts_and_optimizers_without_effect_are_warned_of(tmp_path: Path) -> None:
    rows = [{"prompt": f"{n % 5}+1=?", "answer": str(n % 5 + 1)} for n in range(20)]
    (tmp_path / "copies.jsonl").write_text("\n".join(map(json.dumps, rows)))
    run = recipe("grpo", env=str(tmp_path / "copies.jsonl"), optimizer="adamw8bit")
    assert isinstance(run.trainer, TorchTrainer) and run.trainer.bytes_per_weight == 6
    assert "20 rows of copies hold 5 different prompts" in "\n".join(warnings_of(run))
    run.trainer.lora = 4
    assert "(optimizer=adamw8bit) is for whole weights" in "\n".join(warnings_of(run))
    plain = "\n".join(warnings_of(recipe("grpo", env=tasks(tmp_path))))
    assert "different prompts" not in plain and "adamw8bit" not in plain
