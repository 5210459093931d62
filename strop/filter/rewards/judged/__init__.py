"""How good was each attempt, as somebody says who is asked about it?"""
