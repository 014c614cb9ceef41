"""From installed packages to a stack: discover, index, gate, order, activate, call."""
