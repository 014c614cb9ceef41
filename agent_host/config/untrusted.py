"""What the config of a folder that nobody trusts may say.

Nothing that it may set can run code, loosen the policy, or tell anybody a secret.
"""

from __future__ import annotations

from pathlib import Path

from agent_hookspecs.errors import ConfigError
from agent_host.config.placeholders import has_placeholder
from agent_host.config.values import AppConfig

__all__ = ["refuse_untrusted"]

#: The keys that need no trust, and of which sections only some do.
_HARMLESS = ("$schema", "denied_plugins", "providers", "agents")
_HARMLESS_IN = {
    "providers": ("provider", "model"),
    "agents": ("provider", "model", "system", "tools"),
}


def refuse_untrusted(config: AppConfig, file: Path) -> None:
    """Raise a `ConfigError` that lists what needs trust, if anything does."""
    wanted = [key for key in config.values if key not in _HARMLESS]
    for section, harmless in _HARMLESS_IN.items():
        for name, described in config.values.get(section, {}).items():
            # A placeholder would send whatever the environment has under any name.
            wanted += [
                f"{section}.{name}.{key}"
                for key, value in described.items()
                if key not in harmless or has_placeholder(value)
            ]
    if wanted:
        raise ConfigError(
            f"{file} sets {', '.join(wanted)}, and its folder is not trusted",
            key=wanted[0],
            file=str(file),
            hint="read the file, then run: agent-host config trust",
        )
