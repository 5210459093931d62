"""PCL (2510.01135), the candidates nearest to one half, in an environment in which nothing can be chosen.

Papers: pcl
"""

from __future__ import annotations

from functools import partial

from strop.effects.curricula import GUESS, POOL, curriculum
from strop.recipes.select.pcl import pcl

experiment = curriculum("guess-pcl", GUESS, partial(pcl, pool=POOL), pool=POOL, name="pcl")
