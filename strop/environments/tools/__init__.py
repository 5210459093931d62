"""What can the policy use? One small file per tool; `Toolbox` puts them into an environment."""
