"""Recipes that change which tasks are sampled, how many rollouts each gets, and which groups are trained on."""
