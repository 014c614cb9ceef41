"""A tool plugin, as small as one can be that has every hook the kit looks at."""
