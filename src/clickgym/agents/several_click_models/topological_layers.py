"""The layers of a relation between items, for TopRank and UniRank."""

from __future__ import annotations

from ...core.kernels import kernel


@kernel
def count_beaten(beats, item, layer, sign):
    """Add ``sign`` to the entry in ``layer`` of each item that ``item`` beats."""
    wins = False
    for other in range(len(layer)):
        wins |= beats[item, other]
    if not wins:  # like most items in a large catalogue; adding zeros would take longer
        return
    for other in range(len(layer)):
        layer[other] += sign * beats[item, other]


@kernel
def topological_layers(beats, layer, order, start):
    """Divide the items into layers. The first layer contains the items that no other item beats,
    the second the items that no remaining item beats, and so on. If every remaining item is beaten,
    the relation has a cycle, and the remaining items form one layer.

    Args:
        beats: ``(L, L)`` whether the item of the row beats the item of the column.
        layer: ``(L,)`` output: the layer of each item.
        order: ``(L,)`` output: the items, layer by layer.
        start: ``(L + 1,)`` output: the start of each layer in ``order``, then the end of the last
            layer.

    Returns:
        The number of layers.
    """
    n_items = len(order)
    # The entry of an item without a layer is -1 - n, where n is the number of items without a layer
    # that beat it.
    layer[:] = -1
    for item in range(n_items):
        count_beaten(beats, item, layer, -1)
    placed, n_layers = 0, 0
    while placed < n_items:
        start[n_layers] = placed
        for item in range(n_items):
            if layer[item] == -1:
                layer[item] = n_layers
                order[placed] = item
                placed += 1
        if placed > start[n_layers]:
            for place in range(start[n_layers], placed):
                count_beaten(beats, order[place], layer, 1)
        else:  # a cycle
            for item in range(n_items):
                if layer[item] < 0:
                    layer[item] = n_layers
                    order[placed] = item
                    placed += 1
        n_layers += 1
    start[n_layers] = n_items
    return n_layers
