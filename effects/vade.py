"""VADE (2511.18902), Thompson draws over tasks, in a pool half of whose keys are wrong.

Papers: vade
"""

from __future__ import annotations

from strop.effects.curricula import BROKEN_KEYS, POOL, curriculum
from strop.recipes.select.vade import vade

experiment = curriculum("vade", BROKEN_KEYS, vade, pool=POOL)
