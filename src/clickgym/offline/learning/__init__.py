"""From a click log to a ranker: exposure, what each item is worth, the policy that earns most, and the ranker that keeps it."""
