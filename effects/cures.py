"""CurES, tasks and rollouts by the spread of outcomes, in a pool half of whose keys are wrong.

Papers: cures
"""

from __future__ import annotations

from strop.effects.curricula import BROKEN_KEYS, POOL, curriculum
from strop.recipes.select.cures import cures

experiment = curriculum("cures", BROKEN_KEYS, cures, pool=POOL)
