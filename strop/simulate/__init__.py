"""Simulated learner: tasks with known success rates, and a skill that moves by the exact policy gradient.

Samplers, pass-rate estimators, budgets and gates are those of a run, fed with real groups; only rollouts are Bernoulli
samples. So the gain of a curriculum, and its upper bound, can be measured within seconds and without a language model.
"""
