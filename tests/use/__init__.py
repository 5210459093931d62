"""Every recipe on a user's own data, reward, environment, parts and model."""
