"""CurES, tasks and attempts by the spread of outcomes, in a world in which nothing can be chosen.

Papers: cures
"""

from __future__ import annotations

from strop.effects.curricula import GUESS, POOL, curriculum
from strop.recipes.select.cures import cures

experiment = curriculum("guess-cures", GUESS, cures, pool=POOL, name="cures")
