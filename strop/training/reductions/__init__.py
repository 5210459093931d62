"""How do tokens add up?"""
