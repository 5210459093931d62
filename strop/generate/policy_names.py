"""Names of policy names (`Sampling.policy_name`) that strategies ask for and engines know; a plain request has none."""

from __future__ import annotations

REFERENCE = "reference"  # the model that training began with
NOISE = "noise:"  # and the number of a level
ANNEALED = "annealed:"  # and the version of the weights when the rollout was admitted
