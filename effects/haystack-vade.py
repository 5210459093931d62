"""VADE (2511.18902), Thompson draws over tasks, in one useful level of five.

Papers: vade
"""

from __future__ import annotations

from functools import partial

from strop.effects.curricula import FEW, HAYSTACK, curriculum
from strop.recipes.select.vade import vade

experiment = curriculum("haystack-vade", HAYSTACK, partial(vade, tasks=FEW), pool=FEW, name="vade")
