"""Who gets the credit?"""
