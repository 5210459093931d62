"""What should be tried next?"""
