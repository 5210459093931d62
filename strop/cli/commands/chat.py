"""Command `strop chat`: conversation with a model in the terminal, kept as tokens as in training."""

from __future__ import annotations

import asyncio
import re
from dataclasses import dataclass

from rich.console import Console
from rich.text import Text

from strop.backends import Stop
from strop.cli.models import find_model, open_policy
from strop.errors import ConfigurationError
from strop.generate.conversation import Talk
from strop.generate.policy import Policy, rollout_key
from strop.models.silence_libraries import hush
from strop.observe.report.templates import visible
from strop.types import Message, Sampling, Start, Task


def talk(model: str, temperature: float, max_tokens: int, seed: int, device: str = "cpu") -> None:
    """Read a line and print the completion, until the input ends."""
    hush()
    console = Console(highlight=False)
    sampling = Sampling(temperature=temperature, max_tokens=max_tokens)
    chat = Exchange(open_policy(find_model(model), sampling, device), seed)
    console.print(f"[bold]{model}[/] [dim]temperature {temperature:g}; /new: new conversation, /quit: exit[/]")
    with asyncio.Runner() as runner:
        while (line := _asked(console)) is not None:
            if line == "/new":
                chat.start_over()
            elif line:
                try:
                    console.print(styled(runner.run(chat.say(line))))
                except ConfigurationError as error:
                    console.print(f"[yellow]{error}[/]")
                if chat.is_cut:
                    console.print("[dim](cut at the token limit)[/]")


@dataclass
class Exchange:
    """Conversation with a policy; starts over when the context is full."""

    policy: Policy
    seed: int
    number: int = 0
    dialogue: Talk | None = None

    def start_over(self) -> None:
        self.dialogue, self.number = None, self.number + 1

    @property
    def is_cut(self) -> bool:
        return self.dialogue is not None and self.dialogue.stop is not Stop.STOP

    async def say(self, text: str) -> str:
        """Send a message and return the completion."""
        message = Message("user", text)
        if self.dialogue is not None:
            self.dialogue.hear([message])
            self.dialogue.stop = Stop.STOP  # the user continues, whatever ended the last completion
            if not self.dialogue.is_cut:
                return (await self.dialogue.completion()).content
            self.start_over()
        task = Task((message,), "", "chat")
        key = rollout_key(self.seed, f"chat/{self.number}")
        self.dialogue = self.policy.dialogue(task, Start(f"chat/{self.number}", key))
        return (await self.dialogue.completion()).content


def _asked(console: Console) -> str | None:
    """Next line of the user, or None at the end of the input."""
    try:
        line = console.input("[bold cyan]you[/] ").strip()
    except (EOFError, KeyboardInterrupt):
        console.print()
        return None
    return None if line in ("/quit", "/exit") else line


def styled(text: str) -> Text:
    """Completion as plain text, its thinking dimmed."""
    text = visible(text)
    shown = Text(text)
    for found in re.finditer(r"<think>.*?(?:</think>|$)", text, re.DOTALL):
        shown.stylize("dim", *found.span())
    return shown
