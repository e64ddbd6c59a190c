"""What all rooms use: kernels, checks, files, statistics, text, tables."""
