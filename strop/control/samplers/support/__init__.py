"""Parts that several samplers share: bandit arms, task pools, mixtures."""
