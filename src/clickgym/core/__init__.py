"""What every room uses and what knows nothing of ranking: kernels and their cache, checks, files, statistics, text, tables."""
