"""Shared foundations: kernels, argument checks, files, statistics, text and tables."""
