"""Reward-hacking tests: rewards earned by hostile completions, where only correct answers should pay.

`hostile_completions` generates them by family and seed; `run_attack` plays them in an environment and calls its
rewards; `results` summarizes. No completion is executed here, and rewards run in worker processes even where they call
themselves inline; code in completions does no harm even where a reward evaluates it.
"""
