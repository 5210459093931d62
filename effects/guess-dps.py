"""DPS (2603.10887), a chain of states per task, in an environment in which nothing can be chosen.

Papers: dps
"""

from __future__ import annotations

from strop.effects.curricula import GUESS, POOL, curriculum
from strop.recipes.select.dps import dps

experiment = curriculum("guess-dps", GUESS, dps, pool=POOL, name="dps")
