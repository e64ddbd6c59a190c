"""Foundations for the rest of clickgym: kernels, argument checks, files, statistics and text."""
