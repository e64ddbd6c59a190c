"""What theory says: bounds on the regret, and the assumptions under which they hold."""
