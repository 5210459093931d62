"""How does one rollout unfold?"""
