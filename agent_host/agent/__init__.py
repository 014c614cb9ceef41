"""The tool loop: ask the model, run what it calls, under a policy and within limits."""
