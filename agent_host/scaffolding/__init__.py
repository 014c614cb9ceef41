"""New plugin packages from the template: ``agent-host plugins new``."""
