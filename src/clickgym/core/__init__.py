"""Foundations for the rest of clickgym: kernels, checks, messages, files, statistics and text."""
