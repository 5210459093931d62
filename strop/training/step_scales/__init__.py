"""How far may a step go?"""
