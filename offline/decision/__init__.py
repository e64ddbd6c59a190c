"""From a click log to a decision: which list to show for a query, what it would gain, and what speaks against it."""
