"""PCL (2510.01135), the candidates nearest to one half, in a haystack whose levels say nothing.

Papers: pcl
"""

from __future__ import annotations

from functools import partial

from strop.effects.curricula import FEW, LYING_LEVELS, curriculum
from strop.recipes.select.pcl import pcl

experiment = curriculum("lying-levels-pcl", LYING_LEVELS, partial(pcl, pool=FEW), pool=FEW, name="pcl")
