"""Rule-based stand-ins for LLMs in bundled environments: judges, teachers, task generators."""
