"""How much does an off-policy token count?"""
