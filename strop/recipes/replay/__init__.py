"""Recipes that reuse old rollouts or lessons from them: replay, hindsight, memories."""
