"""PCL (2510.01135), the candidates nearest to one half, in one useful level of five.

Papers: pcl
"""

from __future__ import annotations

from strop.effects.curricula import HAYSTACK, curriculum
from strop.recipes.select.pcl import pcl

experiment = curriculum("pcl", HAYSTACK, pcl)
