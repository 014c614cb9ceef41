"""A provider of ollama chat, as small as one can be that passes every check."""
