"""Tools of all parts of the package that do not depend on ranking: kernels, checks, files,
statistics, text, tables.
"""
