"""Where do tasks come from, and what does the environment answer?"""
