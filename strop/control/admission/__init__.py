"""How far may generation run ahead?"""
