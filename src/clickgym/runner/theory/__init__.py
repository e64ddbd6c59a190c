"""Theory: bounds on the regret, and the assumptions under which they hold."""
