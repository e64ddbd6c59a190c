"""Click models with new candidates in every session, and their rounds in compiled code."""
