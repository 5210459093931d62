"""Which rollouts are made?"""
