"""SEC (2505.14970), environments as arms of a bandit, in one useful level of five.

Papers: sec
"""

from __future__ import annotations

from functools import partial

from strop.effects.curricula import HAYSTACK, curriculum
from strop.recipes.select.sec import sec

experiment = curriculum("sec", HAYSTACK, partial(sec, softness=0.2))
