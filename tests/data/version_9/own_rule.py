"""The rule by which `own_agent` moves an item."""


def one_up(order, item):
    """Swap an item with the item above it."""
    place = order.index(item)  # 0 is the top
    if place:
        order[place - 1 : place + 1] = item, order[place - 1]
