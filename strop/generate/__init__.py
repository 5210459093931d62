"""From a task to rollouts: the policy, its template, and how one rollout is played."""
