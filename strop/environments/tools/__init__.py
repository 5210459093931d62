"""Tools for the policy, one file each; `Toolbox` adds them to an environment."""
