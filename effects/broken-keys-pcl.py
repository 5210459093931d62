"""PCL (2510.01135), the candidates nearest to one half, in a pool half of whose keys are wrong.

Papers: pcl
"""

from __future__ import annotations

from functools import partial

from strop.effects.curricula import BROKEN_KEYS, POOL, curriculum
from strop.recipes.select.pcl import pcl

experiment = curriculum("broken-keys-pcl", BROKEN_KEYS, partial(pcl, pool=POOL), pool=POOL, name="pcl")
