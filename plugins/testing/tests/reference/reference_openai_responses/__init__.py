"""A provider of openai responses, as small as one can be that passes every check."""
