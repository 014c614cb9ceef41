"""What `plugins doctor` and `plugins validate` look at."""
