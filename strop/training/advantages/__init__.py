"""Who gets the advantage?"""
