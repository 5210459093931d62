"""How problems of the bundled environments are rewritten by rules, from the environments' own parsers."""
