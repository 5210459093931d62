"""From a task to attempts: the policy, its template, and how one attempt is played."""
