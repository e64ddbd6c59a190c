"""Makers of documentation pages; the pages themselves lie in ``docs/``."""
