"""What is minimized?"""
