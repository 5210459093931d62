"""State machine of one run of an episode: not begun, open, answering, done, closed; each step at its time alone."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum

from strop.errors import EpisodeError


class Phase(Enum):
    """Where an episode stands, in the words in which a step is refused there."""

    NEW = "it was not reset yet"
    OPEN = "it is open"
    BUSY = "its episode has not answered the call before yet"
    DONE = "its episode has ended it, and what it paid is final"
    FAILED = "its episode failed"
    CLOSED = "it is closed"


@dataclass
class GuardedEpisode:
    """Phase of one episode; a call that it does not allow is refused, whatever the episode would do."""

    phase: Phase = Phase.NEW

    @contextmanager
    def answering(self, needs: Phase) -> Iterator[None]:
        """One call of the episode: no other one is accepted beside it, and none after it broke or was closed."""
        if self.phase is not needs:
            raise EpisodeError(f"this episode takes no {'reset' if needs is Phase.NEW else 'step'}: {self.phase.value}")
        self.phase = Phase.BUSY
        try:
            yield
        except BaseException:
            if self.phase is Phase.BUSY:
                self.phase = Phase.FAILED
            raise
        if self.phase is not Phase.BUSY:  # closed meanwhile: an answer that comes too late pays nothing
            raise EpisodeError(f"this episode takes no answer: {self.phase.value}")
        self.phase = Phase.OPEN

    def end(self) -> None:
        """The episode said that it is done."""
        self.phase = Phase.DONE

    def close(self) -> bool:
        """Whether there is something to close: an episode is closed once."""
        is_first, self.phase = self.phase is not Phase.CLOSED, Phase.CLOSED
        return is_first
