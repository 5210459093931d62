"""Which new tasks follow from a group?"""
