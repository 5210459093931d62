"""How does one attempt unfold?"""
