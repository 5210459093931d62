"""CurES, tasks and rollouts by the spread of outcomes, in a haystack whose levels say nothing.

Papers: cures
"""

from __future__ import annotations

from functools import partial

from strop.effects.curricula import FEW, LYING_LEVELS, curriculum
from strop.recipes.select.cures import cures

experiment = curriculum("lying-levels-cures", LYING_LEVELS, partial(cures, tasks=FEW), pool=FEW, name="cures")
