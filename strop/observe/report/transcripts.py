"""Readable transcripts of rollouts: messages, contexts, and statistics of every completion token."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from tokenizers import Tokenizer
from tokenizers.decoders import DecodeStream

from strop.models.loading.model_names import POCKET
from strop.storage.picture_store import PictureStore, thumbnail
from strop.storage.run_folder import RunFolder
from strop.types import FloatArray, IntArray, Message, Rollout, Turn

_LONGEST = 4000  # tokens of a completion that are shown one by one
_VOICELESS = "main"


@dataclass(frozen=True)
class Token:
    """Piece of a completion; several tokens that form one character are one piece, with the statistics of the last."""

    text: str
    version: int  # of the weights; -1: of none
    probability: float  # with which it was sampled
    advantage: float | None  # its advantage; None: it was never trained on
    ratio: float | None = (
        None  # the policy's probability before the step over that with which it was sampled; None: unknown
    )


@dataclass(frozen=True)
class Utterance:
    """One message; `role` is system, user, assistant, tool or environment."""

    role: str
    text: str  # all of it
    prefix: str = ""  # a beginning that was put before a completion: read, and not trained
    tokens: tuple[Token, ...] = ()  # of what the policy wrote; none: they are too many, or their tokenizer is not there
    pictures: tuple[tuple[str, str], ...] = ()  # what each is called, and a small copy as a data URI where there is one


@dataclass(frozen=True)
class Context:
    """Contiguous context; a rollout's sub-agents and summaries have contexts of their own."""

    name: str
    said: tuple[Utterance, ...]


@dataclass(frozen=True)
class Reader:
    """Decoder of tokens to text; without a tokenizer, of their number."""

    tokenizer: Tokenizer | None
    store: PictureStore | None = None

    @classmethod
    def of(cls, folders: Sequence[Path], store: PictureStore | None = None) -> Reader:
        """By the first tokenizer found."""
        found = next((folder / "tokenizer.json" for folder in folders if (folder / "tokenizer.json").is_file()), None)
        return cls(Tokenizer.from_file(str(found)) if found else None, store)

    @classmethod
    def of_run(cls, folder: RunFolder, model: str) -> Reader:
        """By the tokenizer of a checkpoint, or of the model that the run began with."""
        bundled = [POCKET] if model == "pocket" else []
        return cls.of([*folder.checkpoints.glob("step-*"), Path(model), *bundled], PictureStore(folder.path))

    def pictures(self, message: Message) -> tuple[tuple[str, str], ...]:
        """Those of a message, as they are shown."""
        return tuple(
            (f"{each.digest[:12]}, {each.width} x {each.height}", thumbnail(self.store, each))
            for each in message.images
        )

    def text(self, tokens: IntArray) -> str:
        if self.tokenizer is None:
            return f"({len(tokens)} tokens)"
        return str(self.tokenizer.decode(tokens[tokens >= 0].tolist(), skip_special_tokens=True))

    def whole(self, tokens: IntArray) -> str:
        """Text with special tokens, as the model reads it."""
        if self.tokenizer is None:
            return f"({len(tokens)} tokens)"
        return str(self.tokenizer.decode(tokens[tokens >= 0].tolist(), skip_special_tokens=False))

    def pieces(self, tokens: IntArray) -> Iterator[tuple[str, int]]:
        """Texts that make up the whole, each with the number of its last token; special tokens are empty."""
        stream = DecodeStream(skip_special_tokens=True)
        for number, token in enumerate(tokens.tolist()):
            if self.tokenizer is not None and (text := stream.step(self.tokenizer, token)):
                yield text, number


def contexts(rollout: Rollout, reader: Reader) -> list[Context]:
    """The conversations of a rollout, the main one last."""
    found, said, name = list[Context](), list[Utterance](), ""
    advantage, ratios = _by_turn(rollout, rollout.advantages), _by_turn(rollout, rollout.ratios)
    for number, turn in enumerate(rollout.turns):
        if turn.fresh and said:
            found.append(Context(name, tuple(said)))
            said = []
        if not said:
            name = turn.sampling.policy_name or (_VOICELESS if number == 0 else f"context {len(found) + 1}")
        said += [*_heard(rollout, turn, number, reader), _written(turn, advantage[number], ratios[number], reader)]
    return [*found, Context(name, tuple(said))] if said else found


def _heard(rollout: Rollout, turn: Turn, number: int, reader: Reader) -> list[Utterance]:
    """What stands before a completion; where no message is known, its tokens say it."""
    if number == 0 and not turn.fresh:
        return [_message(message, reader) for message in rollout.task.messages]
    if turn.told:
        return [_message(message, reader) for message in turn.told]
    read = turn.prompt[: len(turn.prompt) - turn.num_prefix]
    return [_env_line(text)] if len(read) and (text := reader.text(read).strip()) else []


def _message(message: Message, reader: Reader) -> Utterance:
    calls = [f"{call.name}({call.arguments})" for call in message.tool_calls]
    said = "\n".join([*([message.content] if message.content else []), *calls])
    return Utterance(message.role, said, pictures=reader.pictures(message))


def _written(
    turn: Turn, advantage: Sequence[float | None], ratios: Sequence[float | None], reader: Reader
) -> Utterance:
    prefix = reader.text(turn.prefix) if turn.num_prefix else ""
    if len(turn.tokens) > _LONGEST:
        return Utterance("assistant", turn.message.content, prefix)
    tokens = [
        Token(text, int(turn.versions[at]), float(np.exp(turn.logprobs[at])), advantage[at], ratios[at])
        for text, at in reader.pieces(turn.tokens)
    ]
    return Utterance("assistant", turn.message.content, prefix, tuple(tokens))


def _by_turn(rollout: Rollout, found: FloatArray | None) -> list[list[float | None]]:
    """Something of every token, by turn; None where it is not known."""
    known: list[float | None] = [None] * rollout.num_tokens
    if found is not None:
        known = [None if value != value else value for value in found.tolist()]
    of_turns, at = [], 0
    for turn in rollout.turns:
        of_turns.append(known[at : at + len(turn.tokens)])
        at += len(turn.tokens)
    return of_turns


def _env_line(text: str) -> Utterance:
    """Templates that write roles as words leave them around the text: `user\\n...\\nassistant`."""
    found = re.fullmatch(r"(user|tool|system)\n(.*?)(?:\n+assistant)?", text, re.DOTALL)
    return Utterance(found[1], found[2]) if found else Utterance("env", text)


def telling(rollouts: Sequence[Rollout], count: int) -> list[Rollout]:
    """A few that show the range: of each task the best, and the worst where it differs."""
    by_task: dict[str, list[Rollout]] = {}
    for rollout in rollouts:
        by_task.setdefault(rollout.task.id, []).append(rollout)
    chosen: list[Rollout] = []
    for siblings in by_task.values():
        best = max(siblings, key=lambda rollout: rollout.reward)
        worst = min(siblings, key=lambda rollout: rollout.reward)
        chosen += [best] if best.reward == worst.reward else [best, worst]
    return chosen[:count]
