"""What of a reply is hidden from a model that fills masks?"""
