"""Sweeps: the plan, the jobs that play its missing runs, and the workers that play the jobs."""
