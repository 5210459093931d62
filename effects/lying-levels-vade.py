"""VADE (2511.18902), Thompson draws over tasks, in a haystack whose levels say nothing.

Papers: vade
"""

from __future__ import annotations

from strop.effects.curricula import LYING_LEVELS, POOL, curriculum
from strop.recipes.select.vade import vade

experiment = curriculum("lying-levels-vade", LYING_LEVELS, vade, pool=POOL, name="vade")
