"""DPS (2603.10887), a chain of states per task, in a haystack whose levels say nothing.

Papers: dps
"""

from __future__ import annotations

from strop.effects.curricula import LYING_LEVELS, POOL, curriculum
from strop.recipes.select.dps import dps

experiment = curriculum("lying-levels-dps", LYING_LEVELS, dps, pool=POOL, name="dps")
