"""DPS (2603.10887), a chain of states per task, in one useful level of five.

Papers: dps
"""

from __future__ import annotations

from strop.effects.curricula import HAYSTACK, POOL, curriculum
from strop.recipes.select.dps import dps

experiment = curriculum("haystack-dps", HAYSTACK, dps, pool=POOL, name="dps")
