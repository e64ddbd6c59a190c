"""Code that does not depend on ranking: kernels, checks, files, statistics, text, tables."""
