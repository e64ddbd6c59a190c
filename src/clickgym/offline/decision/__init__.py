"""From a click log to a decision: which list to show for a query, its expected gain, and the objections."""
