"""DPS (2603.10887), a chain of states per task, in a pool half of whose keys are wrong.

Papers: dps
"""

from __future__ import annotations

from strop.effects.curricula import BROKEN_KEYS, POOL, curriculum
from strop.recipes.select.dps import dps

experiment = curriculum("dps", BROKEN_KEYS, dps, pool=POOL)
