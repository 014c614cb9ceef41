"""Checks a plugin package before anybody installs it: ``agent-host plugins validate``."""
