"""CurES, tasks and attempts by the spread of outcomes, in a haystack whose levels say nothing.

Papers: cures
"""

from __future__ import annotations

from strop.effects.curricula import LYING_LEVELS, POOL, curriculum
from strop.recipes.select.cures import cures

experiment = curriculum("lying-levels-cures", LYING_LEVELS, cures, pool=POOL, name="cures")
