"""Rules that stand in for language models with the bundled episodes: judges, teachers, task generators."""
