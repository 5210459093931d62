"""Steps shared by strategies: extra questions to the policy, forced completions, prompt replacement."""
