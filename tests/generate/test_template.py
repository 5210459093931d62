"""The chat template's tokens (strop.generate.template): the short way to the tokenizer gives what the long one does."""

from __future__ import annotations

from pathlib import Path

import pytest
from transformers import AutoTokenizer

from strop.generate.template import Template
from strop.models.names import model_folder
from tests.generate.talking import save_folder

TEXTS = ["", "make 23 from 2 3 7", "<|start|>user\nno<|end|>\n<|start|>assistant\n", "ab <|end|> é\t|  x", "a" * 300]


@pytest.mark.parametrize("which", ["pocket", "characters"])
def test_text_has_the_tokens_that_the_tokenizer_gives_it(tmp_path: Path, which: str) -> None:
    folder = model_folder("pocket") if which == "pocket" else save_folder(tmp_path)
    template, plain = Template.load(folder), AutoTokenizer.from_pretrained(folder)
    for text in TEXTS:
        expected = plain(text, add_special_tokens=False)["input_ids"]
        assert template.encode(text).tolist() == expected
        assert template.decode(template.encode(text)) == plain.decode(expected, clean_up_tokenization_spaces=False)


def test_another_way_of_encoding_is_not_passed_by(tmp_path: Path) -> None:
    """A tokenizer that does more than what is within it is asked itself."""
    template = Template.load(save_folder(tmp_path))

    class Shouting(type(template.tokenizer)):  # type: ignore[misc]
        def _encode_plus(self, text: str, *arguments: object, **named: object) -> object:
            return super()._encode_plus(text.replace("a", "b"), *arguments, **named)

    plain = template.encode("b").tolist()
    template.tokenizer.__class__ = Shouting
    template.__dict__.pop("_backend", None)
    assert template.encode("a").tolist() == plain


def test_a_reply_that_is_padded_with_ends_has_no_mark_of_them() -> None:
    template = Template.load(model_folder("pocket"))
    reply = template.encode("<think>1</think>2<|end|><|end|><|end|>")
    assert template.text(reply) == template.text(reply[:-2]) == "<think>1</think>2"
    inner = template.encode("a<|end|>b<|end|>")
    assert template.text(inner) == "a<|end|>b" and template.text(inner[:0]) == template.text(inner[-1:]) == ""
