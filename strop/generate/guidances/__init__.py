"""How a value moves the next token's distribution; the engine `Guided` asks one of these at every token."""
