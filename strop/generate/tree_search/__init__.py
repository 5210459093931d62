"""Tree search over rollouts: branching, nodes, lookahead decoding."""
