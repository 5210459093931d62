"""What should be tried next, and how often?"""
