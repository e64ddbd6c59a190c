"""The palette of every figure and page."""

# Okabe and Ito's colours, which people with any colour vision tell apart, with grey for the yellow
# that paper swallows. When they run out, they come again with another dash pattern.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#000000", "#56B4E9", "#888888")
