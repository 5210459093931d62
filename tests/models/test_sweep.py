"""Every family of models is accepted and right, or refused; the table says which, and the judge can tell."""

from __future__ import annotations

from pathlib import Path

import pytest
import transformers

from strop.models.loading.model_names import families_that_run
from strop.models.loading.tiny_twin import LAYERS, WINDOW, save_twin, tiny_twin
from tests.models.judge import judged
from tests.models.page import PAGE, page_of
from tests.models.sweep import families, is_asked, read_table, twin_of, verdict, write_table


def test_the_table_has_every_family_and_no_accepted_one_is_wrong(tmp_path: Path) -> None:
    found = read_table()
    assert sorted(found) == families(), "another transformers: make families AGAIN=all"
    assert not {name: each for name, each in found.items() if each.is_red}
    assert sum(each.verdict == "runs" for each in found.values()) >= 95
    write_table(found, tmp_path / "table.json")
    assert read_table(tmp_path / "table.json") == found
    assert PAGE.read_text() == page_of(found), "python -m tests.models.sweep writes the page anew"


def test_what_the_loader_says_of_families_is_the_table() -> None:
    runs = [name for name, each in read_table().items() if each.verdict == "runs"]
    assert f"Families that run: {', '.join(sorted(runs))}." in families_that_run()


@pytest.mark.parametrize("family", ["gpt2", "gemma3_text", "qwen3_moe", "deepseek_v3", "phimoe", "lfm2", "blt"])
def test_families_are_judged_as_the_table_says(tmp_path: Path, family: str) -> None:
    found, known = verdict(family, tmp_path), read_table()[family]
    assert found.verdict == known.verdict, found
    assert max(found.trainer, found.gradient, found.engine) < 1e-4 or found.verdict != "runs"


def test_a_window_that_is_one_token_off_is_judged_wrong(tmp_path: Path) -> None:
    """Transformers reads the same weights with a window of 9 tokens: what it says past 8 is not what strop says."""
    twin_of("mistral", tmp_path / "one")
    config = transformers.AutoConfig.from_pretrained(tmp_path / "one")
    assert config.sliding_window == WINDOW and config.num_hidden_layers == LAYERS
    config.sliding_window = WINDOW + 1
    save_twin(config, tmp_path / "other")
    assert judged(tmp_path / "one").verdict == "runs"
    found = judged(tmp_path / "one", truth=tmp_path / "other")
    assert found.verdict == "wrong" and min(found.trainer, found.gradient, found.engine) > 1e-2


def test_a_twin_keeps_the_kinds_of_layers() -> None:
    kinds = ["sliding_attention"] * 5 + ["full_attention"]
    config = transformers.Gemma3TextConfig(num_hidden_layers=12, layer_types=kinds * 2, sliding_window=512)
    twin = tiny_twin(config)
    assert twin.layer_types == ["sliding_attention"] * 2 + ["full_attention"] * 2
    assert (twin.sliding_window, twin.hidden_size, twin.head_dim) == (8, 64, 32)
    assert twin.query_pre_attn_scalar == 32 and twin.eos_token_id is None


def test_another_version_of_transformers_is_swept_anew(tmp_path: Path) -> None:
    path = tmp_path / "table.json"
    write_table(read_table(), path)
    path.write_text(path.read_text().replace(transformers.__version__, "4.0.0", 1))
    assert not read_table(path)
    red, right = judgement_of("wrong"), judgement_of("runs")
    assert is_asked(None, "") and not is_asked(red, "") and is_asked(red, "red") and not is_asked(right, "red")
    assert is_asked(right, "accepted") and is_asked(judgement_of("refused"), "all")


def judgement_of(verdict: str) -> object:
    from tests.models.judge import Judgement

    return Judgement(verdict)
