"""How many attempts may a task have?"""
