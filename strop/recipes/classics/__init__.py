"""Standard baselines: PPO, GRPO, DAPO, DPO, SFT and others."""
