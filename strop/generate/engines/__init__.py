"""Who produces tokens?"""
