"""What is measured with the rest of the package: studies, the scorecard, shipped results, makers of pages; nothing that another
room imports lies here."""
