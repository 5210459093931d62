"""Who else can be asked?"""
