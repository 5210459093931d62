"""What was expected?"""
