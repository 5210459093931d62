"""One completion from pieces written one after the other, perhaps by different engines."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from strop.backends import EXPERTS, Completion, Stop


def joined(pieces: Sequence[Completion], stop: Stop) -> Completion:
    """Each token keeps its own logprob and version, and of `aux` what all pieces that wrote something know.

    What is noted of a whole context stands in the last piece.
    """
    telling = [piece.aux for piece in pieces if len(piece.tokens)] or [piece.aux for piece in pieces]
    names = [name for name in telling[0] if all(name in aux for aux in telling)]
    return Completion(
        np.concatenate([piece.tokens for piece in pieces]),
        np.concatenate([piece.logprobs for piece in pieces]),
        np.concatenate([piece.versions for piece in pieces]),
        stop,
        {n: telling[-1][n] if n == EXPERTS else np.concatenate([aux[n] for aux in telling]) for n in names},
    )
