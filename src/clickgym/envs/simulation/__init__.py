"""What all kinds of users have in common: the base class `UserModel`, the `Task` that defines how
users are simulated, and the kernels that simulate sessions.
"""
