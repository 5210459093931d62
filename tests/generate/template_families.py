"""Small tokenizers and chat templates in the shape of twelve model families: their kind of tokenizer, markers and
order.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
from safetensors.numpy import save_file
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers
from transformers import LlamaConfig, PreTrainedTokenizerFast

_ROOT = Path(__file__).parent.parent.parent
_WORDS = r"\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"  # of tiktoken's kind
_EVERY = "{% for m in messages %}"
_CALLS = "{% for c in m.tool_calls or [] %}{% set f = c.function %}"
_CUE = "{% endfor %}{% if add_generation_prompt %}"
_JSON_CALL = '{"name": "{{ f.name }}", "arguments": {{ f.arguments | tojson }}}'
_TOOLS = "{% if tools %}{% for t in tools %}{{ t | tojson }}{% endfor %}{% endif %}"


@dataclass(frozen=True)
class TemplateFamily:
    """What is particular about one: `kind` of tokenizer, tokens in brackets, and the template."""

    kind: str  # bytes, tiktoken, legacy, first or gemma
    special: tuple[str, ...]
    end: str
    template: str
    markers: tuple[str, ...] = ()  # added tokens that are not flagged as special
    text: tuple[str, ...] = ()  # added tokens that content may hold
    in_vocabulary: bool = False  # the model's own vocabulary lists the special tokens
    rstrip: bool = False  # special tokens take the blanks behind them


def _of(*words: str) -> tuple[str, ...]:
    return tuple(" ".join(words).split())


FAMILIES = {
    "chatml": TemplateFamily(
        "bytes",
        _of("<|endoftext|> <|im_start|> <|im_end|>"),
        "<|im_end|>",
        f"{_EVERY}<|im_start|>{{{{ m.role }}}}\n{_TOOLS}{{{{ m.content }}}}{_CALLS}<tool_call>{_JSON_CALL}</tool_call>"
        f"{{% endfor %}}<|im_end|>\n{_CUE}<|im_start|>assistant\n{{% endif %}}",
        markers=_of("<tool_call> </tool_call>"),
    ),
    "llama3": TemplateFamily(
        "tiktoken",
        _of(
            "<|begin_of_text|> <|end_of_text|> <|start_header_id|> <|end_header_id|>",
            "<|eom_id|> <|eot_id|> <|python_tag|> <|finetune_right_pad_id|>",
        ),
        "<|eot_id|>",
        f"{{{{ bos_token }}}}{_TOOLS}{_EVERY}<|start_header_id|>{{{{ 'ipython' if m.role == 'tool' else m.role }}}}"
        f"<|end_header_id|>\n\n{{{{ m.content | trim }}}}{_CALLS}<|python_tag|>"
        '{"name": "{{ f.name }}", "parameters": {{ f.arguments | tojson }}}{% endfor %}<|eot_id|>'
        f"{_CUE}<|start_header_id|>assistant<|end_header_id|>\n\n{{% endif %}}",
    ),
    "mistral": TemplateFamily(
        "first",
        _of(
            "<unk> <s> </s> [INST] [/INST] [TOOL_CALLS] [AVAILABLE_TOOLS] [/AVAILABLE_TOOLS]",
            "[TOOL_RESULTS] [/TOOL_RESULTS] [SYSTEM_PROMPT] [/SYSTEM_PROMPT]",
        ),
        "</s>",
        f"{{{{ bos_token }}}}{{% if tools %}}[AVAILABLE_TOOLS] {{{{ tools | tojson }}}}[/AVAILABLE_TOOLS]{{% endif %}}"
        f"{_EVERY}{{% if m.role == 'system' %}}[SYSTEM_PROMPT]{{{{ m.content }}}}[/SYSTEM_PROMPT]"
        "{% elif m.role == 'user' %}[INST] {{ m.content }}[/INST]{% elif m.role == 'tool' %}"
        '[TOOL_RESULTS] {"content": {{ m.content | tojson }}}[/TOOL_RESULTS]{% else %} {{ m.content | trim }}'
        f"{_CALLS}[TOOL_CALLS] [{_JSON_CALL}]{{% endfor %}}</s>{{% endif %}}{{% endfor %}}",
        in_vocabulary=True,
    ),
    "gemma": TemplateFamily(
        "gemma",
        _of("<pad> <eos> <bos> <unk> <mask> <start_of_turn> <end_of_turn>"),
        "<end_of_turn>",
        f"{{{{ bos_token }}}}{_TOOLS}{_EVERY}<start_of_turn>{{{{ 'model' if m.role == 'assistant' else m.role }}}}\n"
        f"{{{{ m.content | trim }}}}{_CALLS}```tool_code\n{_JSON_CALL}\n```{{% endfor %}}<end_of_turn>\n"
        f"{_CUE}<start_of_turn>model\n{{% endif %}}",
        markers=_of("<unused0> <unused1>"),
        text=("\n\n", "▁▁", "<table>", "</b>"),
        in_vocabulary=True,
    ),
    "phi": TemplateFamily(
        "legacy",
        _of("<unk> <s> </s> <|endoftext|> <|assistant|> <|system|> <|end|> <|user|> <|tool|>"),
        "<|end|>",
        f"{_TOOLS}{_EVERY}{{{{ '<|' + m.role + '|>' }}}}\n{{{{ m.content }}}}{_CALLS}<|tool_call|>{_JSON_CALL}"
        f"<|/tool_call|>{{% endfor %}}<|end|>\n{_CUE}<|assistant|>\n{{% endif %}}",
        markers=_of("<|tool_call|> <|/tool_call|>"),
        rstrip=True,
    ),
    "glm": TemplateFamily(
        "tiktoken",
        _of("<|endoftext|> [MASK] [gMASK] [sMASK] <sop> <eop> <|system|> <|user|>", "<|assistant|> <|observation|>"),
        "<|user|>",
        f"[gMASK]<sop>{_TOOLS}{_EVERY}{{% if m.role == 'tool' %}}<|observation|>\n<tool_response>{{{{ m.content }}}}"
        "</tool_response>{% else %}<|{{ m.role }}|>\n{% if m.role == 'assistant' %}<think></think>\n{% endif %}"
        f"{{{{ m.content }}}}{{% endif %}}{_CALLS}<tool_call>{{{{ f.name }}}}\n{{% for k, v in f.arguments.items() %}}"
        "<arg_key>{{ k }}</arg_key>\n<arg_value>{{ v if v is string else v | tojson }}</arg_value>\n{% endfor %}"
        "</tool_call>{% endfor %}{% endfor %}{% if add_generation_prompt %}<|assistant|>{% else %}<|user|>{% endif %}",
        markers=_of(
            "<think> </think> <tool_call> </tool_call> <tool_response> </tool_response>",
            "<arg_key> </arg_key> <arg_value> </arg_value>",
        ),
    ),
    "deepseek": TemplateFamily(
        "bytes",
        _of("<｜begin▁of▁sentence｜> <｜end▁of▁sentence｜> <｜▁pad▁｜>"),
        "<｜end▁of▁sentence｜>",
        f"{{{{ bos_token }}}}{_TOOLS}{_EVERY}{{% if m.role == 'system' %}}{{{{ m.content }}}}"
        "{% elif m.role == 'user' %}<｜User｜>{{ m.content }}{% elif m.role == 'tool' %}<｜tool▁output▁begin｜>"
        "{{ m.content }}<｜tool▁output▁end｜>{% else %}<｜Assistant｜>{{ m.content.split('</think>')[-1] }}{% endif %}"
        f"{_CALLS}<｜tool▁call▁begin｜>{{{{ f.name }}}}<｜tool▁sep｜>{{{{ f.arguments | tojson }}}}<｜tool▁call▁end｜>"
        "{% endfor %}{% if m.role == 'assistant' %}<｜end▁of▁sentence｜>{% endif %}"
        f"{_CUE}<｜Assistant｜><think>\n{{% endif %}}",
        markers=_of(
            "<｜User｜> <｜Assistant｜> <think> </think> <｜tool▁output▁begin｜>",
            "<｜tool▁output▁end｜> <｜tool▁call▁begin｜> <｜tool▁sep｜> <｜tool▁call▁end｜>",
            "<｜fim▁begin｜>",
        ),
        text=("ü", "÷"),
    ),
    "harmony": TemplateFamily(
        "tiktoken",
        _of(
            "<|startoftext|> <|endoftext|> <|return|> <|constrain|> <|channel|> <|start|>",
            "<|end|> <|message|> <|call|> <|endofprompt|>",
        ),
        "<|end|>",
        f"<|start|>system<|message|>{_TOOLS}<|end|>{_EVERY}{{% if m.role == 'tool' %}}<|start|>functions.f to=assistant"
        "<|channel|>commentary<|message|>{{ m.content | tojson }}<|end|>{% elif m.role == 'assistant' %}"
        "{% if '<|channel|>final<|message|>' in m.content %}{{ raise_exception('channels in content') }}{% endif %}"
        f"{_CALLS}<|start|>assistant to=functions.{{{{ f.name }}}}<|channel|>commentary json<|message|>"
        "{{ f.arguments | tojson }}<|call|>{% endfor %}<|start|>assistant<|channel|>final<|message|>"
        "{{ m.content }}<|end|>"
        f"{{% else %}}<|start|>{{{{ m.role }}}}<|message|>{{{{ m.content }}}}<|end|>{{% endif %}}"
        f"{_CUE}<|start|>assistant{{% endif %}}",
    ),
    "granite": TemplateFamily(
        "bytes",
        _of("<|end_of_text|> <fim_prefix> <fim_suffix> <|start_of_role|> <|end_of_role|> <|tool_call|>"),
        "<|end_of_text|>",
        f"{{% if tools %}}<|start_of_role|>tools<|end_of_role|>{{{{ tools | tojson(indent=4) }}}}<|end_of_text|>\n"
        f"{{% endif %}}{_EVERY}<|start_of_role|>{{{{ m.role }}}}<|end_of_role|>{{{{ m.content }}}}{_CALLS}<|tool_call|>"
        f"[{_JSON_CALL}]{{% endfor %}}<|end_of_text|>\n{_CUE}<|start_of_role|>assistant<|end_of_role|>{{% endif %}}",
        in_vocabulary=True,
    ),
    "olmo": TemplateFamily(
        "bytes",
        _of("<|endoftext|> <|padding|> <|pad|>"),
        "<|endoftext|>",
        f"<|endoftext|>{_TOOLS}{_EVERY}{{{{ '<|' + m.role + '|>\n' }}}}{{{{ m.content }}}}{_CALLS}{_JSON_CALL}"
        "{% endfor %}{% if m.role == 'assistant' %}<|endoftext|>{% endif %}\n"
        f"{_CUE}<|assistant|>\n{{% endif %}}",
        text=("  ", "    ", "\n\n\n", "|||EMAIL|||"),
        in_vocabulary=True,
    ),
    "smollm": TemplateFamily(
        "bytes",
        _of("<|endoftext|> <|im_start|> <|im_end|> <repo_name> <file_sep> <empty_output>"),
        "<|im_end|>",
        f"{_EVERY}{{% if loop.first and m.role != 'system' %}}<|im_start|>system\nYou help.<|im_end|>\n{{% endif %}}"
        f"<|im_start|>{{{{ m.role }}}}\n{_TOOLS}{{{{ m.content }}}}{_CALLS}{_JSON_CALL}{{% endfor %}}<|im_end|>\n"
        f"{_CUE}<|im_start|>assistant\n{{% endif %}}",
        in_vocabulary=True,
    ),
    "qwen3.5": TemplateFamily(
        "qwen",
        _of("<|endoftext|> <|im_start|> <|im_end|> <|vision_start|> <|vision_end|> <|image_pad|>"),
        "<|im_end|>",
        f"{_EVERY}{{% if m.role == 'tool' %}}<|im_start|>user\n<tool_response>\n{{{{ m.content }}}}\n</tool_response>"
        "<|im_end|>\n{% elif m.role == 'assistant' %}<|im_start|>assistant\n{% set said = m.content %}"
        "{% set thought = m.reasoning_content or '' %}{% if '</think>' in said %}"
        "{% set thought = said.split('</think>')[0].rstrip('\n').split('<think>')[-1].lstrip('\n') %}"
        "{% set said = said.split('</think>')[-1].lstrip('\n') %}{% endif %}"
        "{% if loop.last %}<think>\n{{ thought }}\n</think>\n\n{% endif %}{{ said }}"
        f"{_CALLS}\n<tool_call>\n<function={{{{ f.name }}}}>\n{{% for k, v in f.arguments.items() %}}"
        "<parameter={{ k }}>\n{{ v if v is string else v | tojson }}\n</parameter>\n{% endfor %}</function>\n"
        "</tool_call>"
        f"{{% endfor %}}<|im_end|>\n{{% else %}}<|im_start|>{{{{ m.role }}}}\n{_TOOLS}{{{{ m.content }}}}<|im_end|>\n"
        f"{{% endif %}}{_CUE}<|im_start|>assistant\n<think>\n{{% endif %}}",
        markers=_of(
            "<tool_call> </tool_call> <tool_response> </tool_response> <think> </think>", "<|fim_prefix|> <|file_sep|>"
        ),
    ),
}


@cache
def _corpus() -> str:
    return "\n".join((_ROOT / "docs" / name).read_text() for name in ("health.md", "programs.md"))[:60000]


@cache
def _trained(kind: str, first: tuple[str, ...]) -> str:
    """A tokenizer without added tokens, as JSON, with these texts at the beginning of its vocabulary."""
    is_bytes = kind in ("bytes", "tiktoken", "qwen")
    tokenizer = Tokenizer(models.BPE(byte_fallback=not is_bytes, unk_token="<unk>" if "<unk>" in first else None))
    if is_bytes:
        byte_level = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=kind == "bytes")
        split = pre_tokenizers.Split(Regex(_WORDS), "isolated")
        tokenizer.pre_tokenizer = byte_level if kind == "bytes" else pre_tokenizers.Sequence([split, byte_level])
        tokenizer.normalizer = normalizers.NFC() if kind == "qwen" else None
        alphabet, initial = list(first), pre_tokenizers.ByteLevel.alphabet()
    else:
        alphabet, initial = [*first, *(f"<0x{byte:02X}>" for byte in range(256))], ["▁", "\n"]
        _set_sentencepiece(tokenizer, kind)
    # the trainer flags nothing: its own special tokens are taken out again below
    trainer = trainers.BpeTrainer(
        vocab_size=900, special_tokens=alphabet, initial_alphabet=initial, show_progress=False
    )
    tokenizer.train_from_iterator(_corpus().splitlines(keepends=True), trainer)
    state = json.loads(tokenizer.to_str())
    return json.dumps(state | {"added_tokens": []})


def _set_sentencepiece(tokenizer: Tokenizer, kind: str) -> None:
    if kind == "legacy":
        tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    elif kind == "gemma":
        tokenizer.normalizer = normalizers.Replace(" ", "▁")
        tokenizer.pre_tokenizer = pre_tokenizers.Split("▁", "merged_with_next")
    else:
        tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="first", split=True)


def raw_tokenizer(family: TemplateFamily, is_first: bool = True) -> Tokenizer:
    """What encodes text that stands between control tokens; `is_first`: at the very beginning."""
    tokenizer = Tokenizer.from_str(_trained(family.kind, family.special if family.in_vocabulary else ()))
    if family.kind == "first" and not is_first:
        tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="never", split=True)
    tokenizer.add_tokens([AddedToken(text, normalized=text.isspace()) for text in family.text])
    return tokenizer


def save_family(folder: Path, name: str) -> Path:
    """A model folder of a comparison group, whose weights are nothing."""
    family = FAMILIES[name]
    tokenizer = Tokenizer.from_str(_trained(family.kind, family.special if family.in_vocabulary else ()))
    # in the order of `raw_tokenizer`, so that text has the same numbers there
    tokenizer.add_tokens([AddedToken(text, normalized=text.isspace()) for text in family.text])
    tokenizer.add_special_tokens([_special(text, family) for text in family.special])
    tokenizer.add_tokens([AddedToken(text, normalized=False) for text in family.markers])
    tokenizer.decoder = _decoder(family)
    bos = next((text for text in family.special if "bos" in text or "begin" in text or text == "<s>"), None)
    if bos is not None:  # added where somebody asks for special tokens, which a chat template never does
        tokenizer.post_processor = processors.TemplateProcessing(
            single=f"{bos} $A", special_tokens=[(bos, tokenizer.token_to_id(bos))]
        )
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, bos_token=bos, eos_token=family.end, clean_up_tokenization_spaces=False
    )
    fast.chat_template = family.template
    fast.save_pretrained(folder)
    end = tokenizer.token_to_id(family.end)
    LlamaConfig(vocab_size=2000, eos_token_id=end, max_position_embeddings=4096).save_pretrained(folder)
    save_file({"weight": np.zeros(1, np.float32)}, folder / "model.safetensors")
    return folder


def _special(text: str, family: TemplateFamily) -> AddedToken:
    return AddedToken(text, special=True, normalized=False, rstrip=family.rstrip and text.startswith("<|"))


def _decoder(family: TemplateFamily) -> decoders.Decoder:
    if family.kind in ("bytes", "tiktoken", "qwen"):
        return decoders.ByteLevel()
    return decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()])


def segments(family: TemplateFamily, rendered: str, marks: Sequence[str]) -> list[tuple[str, bool]]:
    """A text that the template wrote, cut at its control tokens; whether each piece is one."""
    pieces, at = list[tuple[str, bool]](), 0
    while at < len(rendered):
        found = [(rendered.find(mark, at), -len(mark), mark) for mark in marks if mark in rendered[at:]]
        if not found:
            return [*pieces, (rendered[at:], False)]
        place, _, mark = min(found)
        pieces += [(rendered[at:place], False), (mark, True)]
        at = place + len(mark)
        if family.rstrip and mark in family.special and mark.startswith("<|"):
            at = len(rendered) - len(rendered[at:].lstrip())
    return pieces
