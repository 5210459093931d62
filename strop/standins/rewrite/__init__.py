"""How problems of the bundled worlds are rewritten by rules, from the worlds' own parsers."""
