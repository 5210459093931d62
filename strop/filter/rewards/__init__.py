"""How good was each attempt?"""
