"""Estimation of click models from logs, one file per family of models."""
