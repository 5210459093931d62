"""VADE (2511.18902), Thompson draws over tasks, in an environment in which nothing can be chosen.

Papers: vade
"""

from __future__ import annotations

from strop.effects.curricula import GUESS, POOL, curriculum
from strop.recipes.select.vade import vade

experiment = curriculum("guess-vade", GUESS, vade, pool=POOL, name="vade")
