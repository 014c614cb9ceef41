"""From installed packages to an active stack: discover, index, states, gate, order, activate."""
