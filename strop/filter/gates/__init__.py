"""What is worth learning from?"""
