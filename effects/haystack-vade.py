"""VADE (2511.18902), Thompson draws over tasks, in one useful level of five.

Papers: vade
"""

from __future__ import annotations

from strop.effects.curricula import HAYSTACK, POOL, curriculum
from strop.recipes.select.vade import vade

experiment = curriculum("haystack-vade", HAYSTACK, vade, pool=POOL, name="vade")
