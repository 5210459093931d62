"""How do weights move?"""
