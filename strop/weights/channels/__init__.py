"""How do weights reach the engines?"""
