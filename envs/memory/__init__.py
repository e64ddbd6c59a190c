"""Users with a memory: what is shown to them today changes how they click tomorrow."""
