"""CurES, tasks and rollouts by the spread of outcomes, in one useful level of five.

Papers: cures
"""

from __future__ import annotations

from functools import partial

from strop.effects.curricula import FEW, HAYSTACK, curriculum
from strop.recipes.select.cures import cures

experiment = curriculum("haystack-cures", HAYSTACK, partial(cures, tasks=FEW), pool=FEW, name="cures")
