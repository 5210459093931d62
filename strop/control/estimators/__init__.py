"""How likely is a task solved now?"""
