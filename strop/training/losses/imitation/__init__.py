"""Losses on demonstrations and teachers, besides plain likelihood."""
