"""Users that are more than one click model: users whose behaviour changes (`piecewise_stationary`),
who issue many queries (`queries`), who see new items with features in every session (`contextual`),
or who have a memory (`memory`). The kernels of the last two, which draw what changes between
sessions, are in modules of their own.
"""
