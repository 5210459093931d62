"""VADE (2511.18902), Thompson draws over tasks, in a haystack whose levels say nothing.

Papers: vade
"""

from __future__ import annotations

from functools import partial

from strop.effects.curricula import FEW, LYING_LEVELS, curriculum
from strop.recipes.select.vade import vade

experiment = curriculum("lying-levels-vade", LYING_LEVELS, partial(vade, tasks=FEW), pool=FEW, name="vade")
