"""DPS (2603.10887), a chain of states per task, in one useful level of five.

Papers: dps
"""

from __future__ import annotations

from functools import partial

from strop.effects.curricula import FEW, HAYSTACK, curriculum
from strop.recipes.select.dps import dps

experiment = curriculum("haystack-dps", HAYSTACK, partial(dps, tasks=FEW), pool=FEW, name="dps")
