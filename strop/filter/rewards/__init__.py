"""How good was each rollout?"""
