"""The scorecard: one protocol, the results of the agents of the package, and a place for another among them."""
