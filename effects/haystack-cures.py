"""CurES, tasks and attempts by the spread of outcomes, in one useful level of five.

Papers: cures
"""

from __future__ import annotations

from strop.effects.curricula import HAYSTACK, POOL, curriculum
from strop.recipes.select.cures import cures

experiment = curriculum("haystack-cures", HAYSTACK, cures, pool=POOL, name="cures")
