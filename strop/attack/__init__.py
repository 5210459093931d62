"""A hacking bench: what hostile replies earn from a reward that should pay right answers only.

`replies` writes them, by family and seed; `bench` plays them in a world and asks the reward; `verdict` says what came
of it. Nothing here runs what a reply says, and rewards are asked in worker processes even where they call themselves
inline; whoever evaluates replies in there finds that the code in them does no harm.
"""
