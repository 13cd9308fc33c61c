"""A simulated world on a virtual clock: one cloud, one Ray cluster, one base."""
