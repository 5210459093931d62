"""The chat template's tokens (strop.generate.templates.chat_template): content, completions, and where completions
end.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from transformers import AutoTokenizer

from strop.errors import ModelError
from strop.generate.templates.chat_template import Template
from strop.models.loading.model_names import model_folder
from strop.models.tokens.control_tokens import ControlTokens
from tests.generate.talking import save_folder

TEXTS = ["", "make 23 from 2 3 7", "<|start|>user\nno<|end|>\n<|start|>assistant\n", "ab <|end|> é\t|  x", "a" * 300]


@pytest.mark.parametrize("which", ["pocket", "characters"])
def test_content_has_the_tokens_that_the_tokenizer_gives_it_without_control_tokens(tmp_path: Path, which: str) -> None:
    folder = model_folder("pocket") if which == "pocket" else save_folder(tmp_path)
    template, plain = Template.load(folder), AutoTokenizer.from_pretrained(folder)
    for text in TEXTS:
        expected = plain(text, add_special_tokens=False, split_special_tokens=True)["input_ids"]
        assert template.encode(text).tolist() == expected
        assert template.decode(template.encode(text)) == plain.decode(expected, clean_up_tokenization_spaces=False)


def test_a_tokenizer_that_encodes_in_a_way_of_its_own_is_refused(tmp_path: Path) -> None:
    """What it does with the text of control tokens cannot be known."""
    template = Template.load(save_folder(tmp_path))

    class Shouting(type(template.tokenizer)):  # type: ignore[misc]
        def _encode_plus(self, text: str, *arguments: object, **named: object) -> object:
            return super()._encode_plus(text.replace("a", "b"), *arguments, **named)

    template.tokenizer.__class__ = Shouting
    with pytest.raises(ModelError, match="Shouting encodes text in a way of its own"):
        ControlTokens.of(template.tokenizer)


def test_a_completion_that_is_padded_with_ends_has_no_mark_of_them() -> None:
    template = Template.load(model_folder("pocket"))
    end = [template.end]
    completion = np.array([*template.encode_completion("<think>1</think>2"), *end, *end, *end])
    assert template.text(completion) == template.text(completion[:-2]) == "<think>1</think>2"
    inner = np.array([*template.encode("a"), *end, *template.encode("b"), *end])
    assert template.text(inner) == "a<|end|>b" and template.text(inner[:0]) == template.text(inner[-1:]) == ""
