"""One request from end to end, as steps that own no socket."""
