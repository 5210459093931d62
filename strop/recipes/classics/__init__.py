"""Standard baselines: PPO, GRPO, DAPO, DPO, SFT and other widely compared algorithms."""
