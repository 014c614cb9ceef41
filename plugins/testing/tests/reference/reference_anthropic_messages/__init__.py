"""A provider of anthropic messages, as small as one can be that passes every check."""
