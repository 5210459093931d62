"""State machine of one episode: new, open, busy, done, failed, closed; calls out of order are refused."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum

from strop.errors import EpisodeError


class Phase(Enum):
    """Phase of an episode; its value ends the error message of a refused call."""

    NEW = "it was not reset yet"
    OPEN = "it is open"
    BUSY = "the previous call has not returned yet"
    DONE = "the environment ended the episode, and its reward is final"
    FAILED = "the environment failed"
    CLOSED = "it is closed"


@dataclass
class GuardedEpisode:
    """Phase of one episode; calls that the phase does not allow raise `EpisodeError`."""

    phase: Phase = Phase.NEW

    @contextmanager
    def answering(self, needs: Phase) -> Iterator[None]:
        """One call of the episode; concurrent calls, and calls after a failure or `close`, are refused."""
        if self.phase is not needs:
            raise EpisodeError(f"this episode takes no {'reset' if needs is Phase.NEW else 'step'}: {self.phase.value}")
        self.phase = Phase.BUSY
        try:
            yield
        except BaseException:
            if self.phase is Phase.BUSY:
                self.phase = Phase.FAILED
            raise
        if self.phase is not Phase.BUSY:  # closed meanwhile: a late answer earns no reward
            raise EpisodeError(f"this episode takes no answer: {self.phase.value}")
        self.phase = Phase.OPEN

    def end(self) -> None:
        """Record that the environment ended the episode."""
        self.phase = Phase.DONE

    def close(self) -> bool:
        """Close the episode; False if it was closed before."""
        is_first, self.phase = self.phase is not Phase.CLOSED, Phase.CLOSED
        return is_first
