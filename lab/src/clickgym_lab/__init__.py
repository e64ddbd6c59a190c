"""MixTS, an agent of ours."""
