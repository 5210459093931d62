"""Control tokens that only a chat template can write: text from elsewhere never becomes one (no token injection).

Characters of content that could spell one are replaced before a template sees them (`private_use_characters.py`). Any
control token in the rendered text is then the template's own: it is replaced by an alias, content is restored, and a
copy of the tokenizer that knows control tokens only by alias encodes the whole text at once. Where content spells no
control token, a text has the tokens that the tokenizer itself gives it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tokenizers import AddedToken, Tokenizer, models

from strop.errors import ModelError
from strop.models.tokens.private_use_characters import LAST_ALIAS, MOST_ALIASES, Twins

_IN_BRACKETS = re.compile(r"<.+>", re.DOTALL)
_HTML = re.compile(  # Gemma has a token for each
    r"</?(table|caption|thead|tbody|tfoot|tr|th|td|h[1-6]|blockquote|strong|em|b|i|u|s|sub|sup|code)>"
)
UNHEARD = "\U000effff"  # a character that no vocabulary has


@dataclass(frozen=True)
class ControlTokens:
    """Encoder of a tokenizer, for rendered chat templates and for content.

    Control tokens are all added tokens that are special, in angle brackets or written by the chat template. Other added
    tokens are text that content may hold: blanks, letters, words and elements of HTML.
    """

    ids: Mapping[str, int]
    twins: Twins
    own: Tokenizer
    copy: Tokenizer  # knows aliases in place of control tokens
    real: Mapping[int, int]  # where the copy has another number for an added token: the model's
    aliases: Mapping[str, str]  # by control token
    finder: Tokenizer  # knows control tokens and nothing else
    is_literal: bool  # no normalizer can turn other text into a control token

    @classmethod
    def of(cls, tokenizer: Any) -> ControlTokens:
        """Refuses a tokenizer whose control tokens cannot be told from text."""
        own = _backend(tokenizer)
        added, written = dict(sorted(own.get_added_tokens_decoder().items())), template_text(tokenizer)
        control = {token.content: number for number, token in added.items() if _is_control(token, written)}
        if len(control) > MOST_ALIASES:
            raise ModelError(
                f"the tokenizer has {len(control)} control tokens, at most {MOST_ALIASES} can be told apart"
            )
        aliases = {text: chr(LAST_ALIAS - place) for place, text in enumerate(control)}
        copy, real = _copied(own, added, aliases)
        finder = Tokenizer(models.BPE())
        finder.add_tokens([AddedToken(text, normalized=False) for text in aliases])
        is_literal = own.normalizer is None or not any(added[each].normalized for each in control.values())
        twins = Twins.of(control, len(aliases))
        found = cls(control, twins, own, copy, real, aliases, finder, is_literal)
        found._check(type(tokenizer).__name__)
        return found

    def encode(self, rendered: str) -> list[int]:
        """Tokens of a template's text with covered content in it."""
        if self.is_literal and not self.twins.has_any(rendered):
            return self.own.encode(rendered, add_special_tokens=False).ids
        return self._ids(self.twins.uncover(self._aliased(rendered)))

    def encode_content(self, text: str, allowed: Iterable[str] = ()) -> list[int]:
        """Tokens of text alone, covered or not: no control tokens but these."""
        plain = self.twins.without_aliases(text)
        for token in allowed:
            plain = plain.replace(token, self.aliases[token])
        return self._ids(self.twins.uncover(plain))

    def spelled(self, text: str) -> list[str]:
        """The control tokens that a text spells, as often as it does."""
        return self.finder.encode(text, add_special_tokens=False).tokens if self.twins.is_risky(text) else []

    def _ids(self, text: str) -> list[int]:
        ids: list[int] = self.copy.encode(text, add_special_tokens=False).ids
        return [self.real.get(each, each) for each in ids] if self.real else ids

    def _aliased(self, text: str) -> str:
        found = self.finder.encode(text, add_special_tokens=False)
        pieces, at = list[str](), 0
        for (begin, end), token in zip(found.offsets, found.tokens, strict=True):
            pieces += [text[at:begin], self.aliases[token]]
            at = end
        return "".join([*pieces, text[at:]])

    def _check(self, kind: str) -> None:
        """The copy does with control tokens what the tokenizer does, and without them writes none."""
        every = "".join(f"a b{text} c\n{text}\n{text}d {text}" for text in self.ids)
        if self._ids(self._aliased(every)) != self.own.encode(every, add_special_tokens=False).ids:
            raise ModelError(
                f"{kind} does more with the text around control tokens than can be kept: take another model"
            )
        wrong = {*self.encode_content(every)} & {*self.ids.values()} - {*self.encode_content(UNHEARD)}
        if wrong:
            named = [text for text, number in self.ids.items() if number in wrong]
            raise ModelError(f"{kind} makes the control tokens {named} of mere text: take another model")


def _backend(tokenizer: Any) -> Tokenizer:
    from transformers import PreTrainedTokenizerFast

    is_plain = isinstance(tokenizer, PreTrainedTokenizerFast)
    if not is_plain or type(tokenizer)._encode_plus is not PreTrainedTokenizerFast._encode_plus:
        raise ModelError(
            f"the tokenizer {type(tokenizer).__name__} encodes text in a way of its own, so control tokens cannot be "
            "told from text that spells them: need a tokenizer.json that PreTrainedTokenizerFast reads"
        )
    backend: Tokenizer = tokenizer.backend_tokenizer
    return backend


def template_text(tokenizer: Any) -> str:
    """Its chat templates as they are written."""
    template = tokenizer.chat_template or ""
    return "\n".join(map(str, template.values())) if isinstance(template, dict) else str(template)


def _is_control(token: AddedToken, written: str) -> bool:
    text = token.content.strip()
    if not text or token.special:
        return bool(text)
    is_marker = _IN_BRACKETS.fullmatch(text) and not _HTML.fullmatch(text)
    return bool(is_marker) or (not text.isalnum() and text in written)


def _copied(
    own: Tokenizer, added: Mapping[int, AddedToken], aliases: Mapping[str, str]
) -> tuple[Tokenizer, dict[int, int]]:
    """The same tokenizer with aliases for control tokens, and the model's numbers for what it numbers itself."""
    model = own.model
    if any(model.token_to_id(text) is not None for text in aliases):  # else text alone could spell them
        model = Tokenizer.from_str(json.dumps(_renamed(json.loads(own.to_str()), aliases))).model
    copy = Tokenizer(model)
    if own.normalizer is not None:
        copy.normalizer = own.normalizer
    if own.pre_tokenizer is not None:
        copy.pre_tokenizer = own.pre_tokenizer
    tokens = [_alias(token, aliases) for token in added.values()]
    copy.add_tokens(tokens)
    numbers: list[Any] = [copy.token_to_id(token.content) for token in tokens]
    real = {number: known for number, known in zip(numbers, added, strict=True) if number != known}
    if taken := [number for number in real if model.id_to_token(number) is not None]:
        raise ModelError(f"the tokenizer numbers its tokens with gaps: {taken[0]} would be two of them")
    return copy, real


def _alias(token: AddedToken, aliases: Mapping[str, str]) -> AddedToken:
    return AddedToken(
        aliases.get(token.content, token.content),
        single_word=token.single_word and token.content not in aliases,
        lstrip=token.lstrip,
        rstrip=token.rstrip,
        normalized=token.normalized,
        special=token.special,
    )


def _renamed(state: dict[str, Any], aliases: Mapping[str, str]) -> dict[str, Any]:
    """A tokenizer's model whose vocabulary lists aliases, and no way to join letters to a control token."""
    model = state["model"]
    if isinstance(model["vocab"], dict):
        model["vocab"] = {aliases.get(text, text): number for text, number in model["vocab"].items()}
    else:
        model["vocab"] = [[aliases.get(text, text), score] for text, score in model["vocab"]]
    if "merges" in model:
        model["merges"] = [pair for pair in model["merges"] if not _makes(pair, aliases)]
    if model.get("unk_token") in aliases:
        model["unk_token"] = aliases[model["unk_token"]]
    return {"version": state["version"], "added_tokens": [], "model": model}


def _makes(pair: Sequence[str], aliases: Mapping[str, str]) -> bool:
    return "".join(pair) in aliases or any(each in aliases for each in pair)
