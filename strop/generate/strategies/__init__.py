"""Which attempts are made?"""
