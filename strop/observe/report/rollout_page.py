"""Page of rollouts as conversations, with optional statistics of every token."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from markupsafe import Markup, escape

from strop.environments.data.answer_extraction import extracted
from strop.observe.metrics.group_tree import tone_of
from strop.observe.report.templates import compiled, visible
from strop.observe.report.transcripts import Context, Reader, Token, Utterance, contexts
from strop.types import Rollout

_MOST = 20_000  # characters of what is said in one piece that are shown
_FOLDED = 240  # characters of what the environment says that stand open
_PICTURES = 16  # of one message
_HUES = 6  # colours of versions
_THOUGHT = re.compile(r"<think>.*?(?:</think>|$)", re.DOTALL)
_TEMPLATE = """\
<div class="said">
<fieldset class="by"><legend>Colour</legend>
  {%- for name in ("none", "advantage", "probability", "ratio", "version", "trained") %}
  <label><input type="radio" name="{{ whose }}" class="by-{{ name }}"{{ " checked" if loop.first }}>{{ name }}</label>
  {%- endfor %}
</fieldset>
<div class="columns">
{%- for title, rollouts in samples %}
<section><h3>{{ title }}</h3>
{%- for rollout in rollouts %}
<article class="card rollout">
  <header>
    <span class="reward {{ rollout.tone }}">reward {{ rollout.reward }}</span>
    <span class="soft">{{ rollout.outcome }}</span>
    <span class="soft">{{ rollout.tokens }} tokens</span>
    <span class="task"><a{{ href(rollout.name) }}>{{ rollout.name }}</a> · {{ rollout.task }}</span>
  </header>
  {%- if rollout.read %}
  <details class="fold"><summary>what the model read first, {{ rollout.num_read }} tokens</summary>
    <pre>{{ visible(rollout.read) }}</pre></details>
  {%- endif %}
  {%- for context in rollout.contexts %}
  {%- if rollout.contexts | length > 1 %}
  <details class="context"{{ " open" if loop.last }}><summary>{{ visible(context.name) }}
    <span class="soft">{{ context.said | length }} messages</span></summary>
  {%- endif %}
  {%- for line in context.said %}
  <div class="turn {{ line.role }}"><b>{{ line.role }}</b>{{ spoken(line) }}</div>
  {%- endfor %}
  {%- if rollout.contexts | length > 1 %}</details>{% endif %}
  {%- endfor %}
  {%- if rollout.answer %}
  <p class="answer">right answer <code>{{ visible(rollout.answer) }}</code>{% if rollout.rule %}
    · found in the completion ({{ rollout.rule }}) <code>{{ visible(rollout.found) or "nothing" }}</code>{% endif %}</p>
  {%- endif %}
</article>
{%- endfor %}
</section>
{%- endfor %}
</div>
</div>
"""

STYLE = """\
.by { border: 0; padding: 0; margin: 0 0 10px; display: flex; flex-wrap: wrap; gap: 4px 16px; font-size: 13px; }
.by legend { float: left; padding: 0; margin-right: 16px; color: var(--soft); }
.by label { display: inline-flex; gap: 5px; align-items: center; }
.rollout .context { margin: 0; padding: 6px 0; border-top: 1px solid var(--hair); }
.rollout summary { font-size: 12.5px; font-weight: 500; overflow-wrap: anywhere; }
.rollout .fold { margin: 0; }
.rollout .fold pre { padding: 8px; margin-top: 4px; font-size: 12.5px; }
.rollout .given { color: var(--soft); border-bottom: 1px dotted var(--soft); }
.said:has(.by-advantage:checked) i.up { background: color-mix(in srgb, var(--good) calc(var(--c) * 45%), transparent); }
.said:has(.by-advantage:checked) i.down { background: color-mix(in srgb, var(--bad) calc(var(--c) * 45%), transparent);
} .said:has(.by-probability:checked) pre i { background: color-mix(in srgb, var(--accent) calc(var(--p) * 70%),
transparent); }
.said:has(.by-ratio:checked) i.likelier { background: color-mix(in srgb, var(--good) var(--r), transparent); }
.said:has(.by-ratio:checked) i.rarer { background: color-mix(in srgb, var(--bad) var(--r), transparent); }
.said:has(.by-ratio:checked) pre i:not(.likelier, .rarer) { color: var(--soft); }
.said:has(.by-trained:checked) i.left { color: var(--soft); text-decoration: line-through; }
.said:has(.by-trained:checked) pre i:not(.left) { background: color-mix(in srgb, var(--strong) 18%, transparent); }
.rollout img.seen { display: block; max-width: 256px; max-height: 256px; margin: 4px 0; image-rendering: pixelated; }
.rollout pre i { font-style: normal; }
"""
STYLE += "".join(
    f".said:has(.by-version:checked) i.v{number} {{ background: hsl({360 * number // _HUES} 70% 50% / 0.28); }}\n"
    for number in range(_HUES)
)


@dataclass(frozen=True)
class ReadRollout:
    """Rollout as it is shown."""

    name: str
    reward: str
    tone: str  # right, partly, wrong
    outcome: str
    tokens: int
    task: str
    contexts: Sequence[Context]
    answer: str
    rule: str  # by which the answer is found in a completion, where one is known
    found: str
    read: str = ""  # the first prompt, special tokens and all
    num_read: int = 0  # its tokens


def readable(rollout: Rollout, reader: Reader, rules: Mapping[str, str]) -> ReadRollout:
    """A rollout for reading; `rules` say how answers are found in completions, by source of tasks."""
    rule = rules.get(rollout.task.source, "")
    return ReadRollout(
        rollout.id,
        f"{rollout.reward:.3g}" if rollout.is_scored else "–",
        tone_of(rollout),
        rollout.outcome.value,
        rollout.num_tokens,
        f"{rollout.task.source} level {rollout.task.level}",
        contexts(rollout, reader),
        rollout.task.answer,
        rule,
        extracted(rule, rollout.completion) if rule else "",
        reader.whole(rollout.turns[0].prompt)[:_MOST] if rollout.turns else "",
        len(rollout.turns[0].prompt) if rollout.turns else 0,
    )


def conversations(samples: Sequence[tuple[str, Sequence[ReadRollout]]], href: Callable[[str], Markup]) -> Markup:
    """A column with a title each; `href` leads to a rollout's page; all that a model or a task wrote is escaped."""
    lines = [line for _, rollouts in samples for each in rollouts for context in each.contexts for line in context.said]
    largest = max((abs(token.advantage or 0.0) for line in lines for token in line.tokens), default=0.0)
    spoken = partial(_spoken, largest=largest)
    whose = "/".join(["by", *(each.name for _, rollouts in samples[:1] for each in rollouts)])  # buttons of one page
    given = {"samples": samples, "spoken": spoken, "href": href, "whose": whose, "visible": visible}
    return Markup(compiled(_TEMPLATE).render(given))


def _spoken(line: Utterance, largest: float) -> Markup:
    """What was said and shown; what the policy did not say is folded where it is long."""
    shown = [_picture(name, source) for name, source in line.pictures[:_PICTURES]]
    more = len(line.pictures) - len(shown)
    left = Markup('<span class="soft">{} more pictures</span>').format(more) if more else Markup("")
    return Markup("").join([*shown, left, _text(line, largest)])


def _picture(name: str, source: str) -> Markup:
    """A small copy; the name of a picture whose bytes are not there."""
    if not source:
        return Markup('<span class="soft">picture {}</span>').format(visible(name))
    return Markup('<img class="seen" src="{}" alt="picture {}" title="{}">').format(
        source, visible(name), visible(name)
    )


def _text(line: Utterance, largest: float) -> Markup:
    if line.tokens:
        return Markup("<pre>{}{}</pre>").format(_given(line.prefix), _coloured(line.tokens, largest))
    text = _thinking(visible(line.text[:_MOST])) + _cut(len(line.text))
    if line.role == "assistant" or len(line.text) <= _FOLDED:
        return Markup("<pre>{}{}</pre>").format(_given(line.prefix), text)
    beginning = visible(" ".join(line.text[:_FOLDED].split())[: _FOLDED // 3])
    return Markup('<details class="fold"><summary>{} … ({:,} characters)</summary><pre>{}</pre></details>').format(
        beginning, len(line.text), text
    )


def _cut(length: int) -> Markup:
    """What a browser is spared: a megabyte without a space takes it seconds."""
    if length <= _MOST:
        return Markup("")
    return Markup('<span class="soft"> … {:,} more characters</span>').format(length - _MOST)


def _given(text: str) -> Markup:
    return (
        Markup('<span class="given" title="given, not trained">{}</span>').format(visible(text)) if text else Markup("")
    )


def _coloured(tokens: Sequence[Token], largest: float) -> Markup:
    """A piece of text per token; what stands between the tags of thinking is set off."""
    thoughts = [found.span() for found in _THOUGHT.finditer("".join(token.text for token in tokens))]
    parts, at = list[str](), 0
    for token in tokens:
        is_thought = any(first <= at < last for first, last in thoughts)
        if at < _MOST:
            parts.append(_piece(token, largest, is_thought))
        at += len(token.text)
    return Markup("".join(parts)) + _cut(at)


def _piece(token: Token, largest: float, is_thought: bool) -> str:
    advantage = token.advantage or 0.0
    kinds = [
        "left" if token.advantage is None else "up" if advantage > 0 else "down",
        f"v{token.version % _HUES}" if token.version >= 0 else "unsampled",
    ]
    style = f"--c:{abs(advantage) / largest if largest else 0.0:.2g};--p:{1 - min(token.probability, 1.0):.2g}"
    if token.ratio is not None:
        kinds.append("likelier" if token.ratio > 1 else "rarer")
        style += f";--r:{60 * min(abs(math.log2(max(token.ratio, 0.5))), 1.0):.0f}%"  # most at half or twice as likely
    told = "not trained" if token.advantage is None else f"advantage {advantage:+.3g}"
    told += "" if token.ratio is None else f", ratio {token.ratio:.3g}"
    label = f"version {token.version}" if token.version >= 0 else "written by no weights"
    title = f"{told}, probability {token.probability:.3g}, {label}"
    shown = " ".join([*kinds, *(["think"] if is_thought else [])])
    return f'<i class="{shown}" style="{style}" title="{title}">{escape(visible(token.text[:_MOST]))}</i>'


def _thinking(text: str) -> Markup:
    """Escaped text in which thinking is set off."""
    parts, at = list[Markup](), 0
    for found in _THOUGHT.finditer(text):
        parts += [escape(text[at : found.start()]), Markup('<span class="think">{}</span>').format(found.group())]
        at = found.end()
    return Markup("").join([*parts, escape(text[at:])])
