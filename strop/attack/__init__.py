"""A hacking bench: what hostile completions earn from a reward that should pay right answers only.

`completions` writes them, by family and seed; `bench` plays them in an environment and asks the reward; `verdict` says
what came
of it. Nothing here runs what a completion says, and rewards are asked in worker processes even where they call
themselves inline; whoever evaluates completions in there finds that the code in them does no harm.
"""
