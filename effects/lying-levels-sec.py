"""SEC (2505.14970), environments as arms of a bandit, in a haystack whose levels say nothing.

Papers: sec
"""

from __future__ import annotations

from functools import partial

from strop.effects.curricula import LYING_LEVELS, curriculum
from strop.recipes.select.sec import sec

experiment = curriculum("lying-levels-sec", LYING_LEVELS, partial(sec, softness=0.2), name="sec")
