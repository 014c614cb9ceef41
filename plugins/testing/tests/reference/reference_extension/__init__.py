"""A provider extension, as small as one can be that has every hook the kit looks at."""
