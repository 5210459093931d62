"""The bundled model, and the script that made it."""
