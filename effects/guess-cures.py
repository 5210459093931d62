"""CurES, tasks and rollouts by the spread of outcomes, in an environment in which nothing can be chosen.

Papers: cures
"""

from __future__ import annotations

from strop.effects.curricula import GUESS, POOL, curriculum
from strop.recipes.select.cures import cures

experiment = curriculum("guess-cures", GUESS, cures, pool=POOL, name="cures")
