"""Sweeps: the plan, the jobs that play its missing runs, the workers, and their progress."""
