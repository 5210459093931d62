"""How many rollouts may a task have?"""
