"""Trees of rollouts: branches, nodes, parallel decoding."""
