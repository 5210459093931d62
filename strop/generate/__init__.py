"""Generation of rollouts: policy, chat template, agents, strategies and inference engines."""
