"""A simulated learner: tasks whose probabilities are known, a skill that moves by the exact policy gradient.

Samplers, pass-rate estimators, budgets and gates are those of a run, fed with real groups; only rollouts are coins.
What a curriculum can gain at best, and what it gains, shows within seconds and without a language model.
"""
