"""A provider of google generate, as small as one can be that passes every check."""
