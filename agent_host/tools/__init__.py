"""Running what models call."""
