"""What is kept, and drawn again?"""
