"""Search conversations of the pocket model's corpus: questions about names that are made up anew each time, never
facts.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

from strop.environments.bundled.keyvalue import call
from strop.environments.tools.bundled_corpus import PLANET, SUN, THINGS, named, query, sentence
from strop.pocket.target_accuracy import ACCURACY, slip_text
from strop.types import Message


@dataclass(frozen=True)
class Searches:
    """Generates conversations from one stream of random numbers; the level is the number of searches."""

    stream: random.Random

    def messages(self, level: int) -> tuple[Message, ...]:
        """A question, searches and what they find, and the answer; some end a search too early, or misspell."""
        things = [self.stream.choice(THINGS), *([self.stream.choice((SUN, PLANET))] if level > 1 else [])]
        found = named(self.stream)
        said = [Message("user", f"{' of '.join((*things, found))}?")]
        is_right = self.stream.random() < ACCURACY["search"][level]
        is_early = not is_right and self.stream.random() < 0.5
        for thing in reversed(things[1:] if is_early else things):
            said.append(Message("assistant", call(f"search {query(thing, found)}")))
            before, found = found, named(self.stream)
            said.append(Message("tool", sentence(thing, before, found)))
        answer = found if is_right or is_early else slip_text(self.stream, 1.0)(found)
        return (*said, Message("assistant", answer))
