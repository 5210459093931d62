"""What of a completion is hidden from a model that fills masks?"""
