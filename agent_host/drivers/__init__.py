"""Who waits: the effects that steps ask for, carried out by blocking or by awaiting."""
