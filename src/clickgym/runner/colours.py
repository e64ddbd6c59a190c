"""The palette of every figure and page."""

# The palette of Okabe and Ito, which readers with colour-vision deficiency can distinguish; grey
# replaces its yellow, which is faint in print. Further curves reuse it with another dash pattern.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#000000", "#56B4E9", "#888888")
