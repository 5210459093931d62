"""How good was each rollout, as somebody says who is asked about it?"""
