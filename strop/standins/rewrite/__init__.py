"""Rule-based rewriting of tasks of the bundled environments, with the environments' own parsers."""
