"""DPS (2603.10887), a chain of states per task, in a haystack whose levels say nothing.

Papers: dps
"""

from __future__ import annotations

from functools import partial

from strop.effects.curricula import FEW, LYING_LEVELS, curriculum
from strop.recipes.select.dps import dps

experiment = curriculum("lying-levels-dps", LYING_LEVELS, partial(dps, tasks=FEW), pool=FEW, name="dps")
