"""V0.5's test of a forecast (2603.10848): how far it lies from what k attempts showed, beyond their own chance.

Rewards from 0 to 1, so that the mean of k attempts has a variance of at most 1 / 4k; the paper writes them as -1 and 1,
where it is 1 / k.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Prior:
    """A forecast beside the mean of `count` attempts; a forecast within their chance is taken for right."""

    forecast: float
    mean: float
    count: float  # at least 1

    @property
    def noise(self) -> float:
        return 1 / (4 * self.count)

    @property
    def error(self) -> float:
        """The forecast's squared error, as far as it is more than chance."""
        return max((self.mean - self.forecast) ** 2 - self.noise, 0.0)

    @property
    def doubt(self) -> float:
        """How much of the baseline is the mean's; the rest is the forecast's."""
        return self.error / (self.error + self.noise)

    @property
    def baseline(self) -> float:
        return self.doubt * self.mean + (1 - self.doubt) * self.forecast

    def risk(self, more: int = 0) -> float:
        """The baseline's squared error with so many attempts more: doubt^2 * noise + (1 - doubt)^2 * error."""
        return self.error / (1 + 4 * (self.count + more) * self.error)
