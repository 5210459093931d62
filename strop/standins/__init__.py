"""Rules that stand in for language models with the bundled environments: judges, teachers, task generators."""
