"""A provider of chat completions, as small as one can be that passes every check."""
