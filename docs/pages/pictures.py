"""Pictures of the pages of environments, as SVG that is readable on light and on dark paper: how users move through a list, and
how often each position is clicked."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from html import escape
from itertools import pairwise, permutations
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

STYLE = """
text { font: 14px system-ui, sans-serif; fill: #1b1f24; text-anchor: middle; }
.small { font-size: 12px; fill: #57606a; }
.line, .state, .end { stroke: #6b7685; stroke-width: 1.3; fill: none; }
.state { fill: #f5f7f9; }
.end { stroke-dasharray: 4 3; }
.click { stroke: #0072b2; fill: #e6f0fd; }
.head { fill: #6b7685; }
.s0 { fill: #0072b2; } .s1 { fill: #e69f00; } .s2 { fill: #009e73; }
@media (prefers-color-scheme: dark) {
  text { fill: #e8eaed; }
  .small { fill: #a3adb8; }
  .state { fill: #1d2227; }
  .click { stroke: #56b4e9; fill: #16324a; }
  .line, .state, .end { stroke: #8b96a3; }
  .head { fill: #8b96a3; }
  .s0 { fill: #56b4e9; } .s2 { fill: #3fcf9f; }
}
"""
CHARACTER, GAP = 7.6, 18.0
"""The width of a character of 14 pixels, and the room between what stands side by side."""


class Move(NamedTuple):
    """An arrow of a picture: from a state of a user to another, with its probability."""

    source: str
    target: str
    probability: str


def moves_of(text: str) -> list[Move]:
    """The moves that the section ``User`` of a docstring describes, a line each.

    Args:
        text: lines ``state → state: probability``.

    Raises:
        ValueError: a line is not of this form; or the moves lead back to a state.

    Example:
        >>> moves_of("examine k → click: α(d_k)")
        [Move(source='examine k', target='click', probability='α(d_k)')]
    """
    moves = []
    for line in text.splitlines():
        parts = re.fullmatch(r"\s*(.+?) → (.+?): (.+?)\s*", line)
        if parts is None:
            raise ValueError(f"the user does {line!r}; expected 'state → state: probability'")
        moves.append(Move(*parts.groups()))
    return moves


# ------------------------------------------------------------------------------------------------------------------- flow


class _Node:
    """What stands in a row of the picture: a state, the probability of a move, or the line of one that passes by."""

    def __init__(self, text: str, row: int, kind: str) -> None:
        self.lines, self.row, self.kind = text.split(", ") if kind == "state" else [text], row, kind
        longest = max(len(_plain(line)) for line in self.lines)
        self.width = longest * CHARACTER + {"state": 26, "label": 8, "line": 0}[kind]
        self.height = {"state": 16 + 18 * len(self.lines), "label": 20, "line": 0}[kind]
        self.x = self.y = 0.0
        self.neighbours: list[_Node] = []


def flow(moves: Sequence[Move], title: str) -> str:
    """Draw states and moves from the top to the bottom: each state below those that lead to it, states without a way out last.

    Args:
        moves: without a way back to a state.
        title: what the picture shows, for readers who do not see it.

    Returns:
        SVG.
    """
    rows, paths, states = _placed(moves)
    _order(rows)
    width = _set_places(rows)
    shapes = [_line(path) for path in paths]
    sinks = {move.target for move in moves} - {move.source for move in moves}
    for name, node in states.items():
        kind = "state end" if name in sinks else "state click" if name.startswith("click") else "state"
        left, top = node.x - node.width / 2, node.y - node.height / 2
        shapes.append(
            f'<rect class="{kind}" x="{left:.0f}" y="{top:.0f}" width="{node.width:.0f}" height="{node.height}" rx="8"/>'
        )
        for place, line in enumerate(node.lines):
            shapes.append(_text(node.x, node.y + 5 + 18 * (place - (len(node.lines) - 1) / 2), line))
    shapes += [_text(node.x, node.y + 4, node.lines[0], "small") for path in paths for node in path if node.kind == "label"]
    return _svg(width, rows[-1][0].y + max(node.height for node in rows[-1]) / 2 + 4, title, shapes)


def _placed(moves: Sequence[Move]) -> tuple[list[list[_Node]], list[list[_Node]], dict[str, _Node]]:
    """The rows from the top, the nodes that each move passes, and those of the states.

    States stand in even rows; in the odd row below its state each move has its probability, and from there on a line.
    """
    names = list(dict.fromkeys(name for move in moves for name in move[:2]))
    depth = dict.fromkeys(names, 0)
    for _ in names:
        for source, target, _probability in moves:
            depth[target] = max(depth[target], depth[source] + 1)
    if max(depth.values()) >= len(names):
        raise ValueError(f"the moves {', '.join(names)} lead back to a state; expected a state for each thing that follows")
    sources = {move.source for move in moves}
    last = max(depth.values())
    states = {name: _Node(name, 2 * (depth[name] if name in sources else last), "state") for name in names}
    rows: list[list[_Node]] = [[] for _ in range(2 * last + 1)]
    for node in states.values():
        rows[node.row].append(node)
    paths = []
    for source, target, probability in moves:
        first, end = states[source], states[target]
        sure = probability == "1"
        between = [_Node("" if sure else probability, first.row + 1, "line" if sure else "label")]
        between += [_Node("", row, "line") for row in range(first.row + 2, end.row)]
        for node in between:
            rows[node.row].append(node)
        paths.append([first, *between, end])
        for upper, lower in pairwise(paths[-1]):
            upper.neighbours.append(lower)
            lower.neighbours.append(upper)
    return rows, paths, states


def _order(rows: list[list[_Node]]) -> None:
    """Order each row so that few lines cross: from each order of the last row on, the best of each other row in turn, from the
    top and from the bottom, until none gets better."""

    def crossings(upper: Sequence[_Node], lower: Sequence[_Node]) -> int:
        place = {id(node): number for number, node in enumerate(lower)}
        ends = [[place[id(end)] for end in node.neighbours if id(end) in place] for node in upper]
        return sum(a > b for number, left in enumerate(ends) for right in ends[number + 1 :] for a in left for b in right)

    def cost(orders: Sequence[Sequence[_Node]], number: int, row: Sequence[_Node]) -> int:
        above = crossings(orders[number - 1], row) if number else 0
        return above + (crossings(row, orders[number + 1]) if number + 1 < len(orders) else 0)

    def improved(last: Sequence[_Node], turns: Sequence[int]) -> list[list[_Node]]:
        orders = [*rows[:-1], [*last]]
        better = True
        while better:
            better = False
            for number in turns:
                costs = {order: cost(orders, number, order) for order in permutations(orders[number])}
                best = min(costs, key=costs.__getitem__)
                if costs[best] < cost(orders, number, orders[number]):
                    orders[number], better = [*best], True
        return orders

    def total(orders: list[list[_Node]]) -> int:
        return sum(crossings(upper, lower) for upper, lower in pairwise(orders))

    down = range(len(rows) - 1)
    every: list[list[list[_Node]]] = [improved(last, turns) for last in permutations(rows[-1]) for turns in (down, down[::-1])]
    fewest = min(every, key=total)
    rows[:] = fewest


def _set_places(rows: list[list[_Node]]) -> float:
    """Set x and y: each node near the middle of what it is joined to, none on another. Returns the width."""
    for row in rows:
        _spread(row, [0.0] * len(row))
    for _ in range(60):
        for row in rows:
            _spread(row, [sum(other.x for other in node.neighbours) / len(node.neighbours) for node in row])
    left = min(node.x - node.width / 2 for row in rows for node in row) - 4
    top = 4.0
    for row in rows:
        height = max(node.height for node in row)
        for node in row:
            node.y = round(top + height / 2, 1)
        travel = max((abs(node.x - other.x) for node in row for other in node.neighbours if other.row > node.row), default=0.0)
        top += height + 14 + min(travel / 8, 26)
    for row in rows:
        for node in row:
            node.x = round(node.x - left, 1)
    return max(node.x + node.width / 2 for row in rows for node in row) + 4


def _spread(row: Sequence[_Node], wanted: Sequence[float]) -> None:
    """Set x as near as can be to what is wanted: the mean of what is pushed to the right, and to the left."""
    apart = [(left.width + right.width) / 2 + GAP for left, right in pairwise(row)]
    rightwards, leftwards = [*wanted], [*wanted]
    for place, room in enumerate(apart):
        rightwards[place + 1] = max(rightwards[place + 1], rightwards[place] + room)
    for place in range(len(apart) - 1, -1, -1):
        leftwards[place] = min(leftwards[place], leftwards[place + 1] - apart[place])
    for node, right, left in zip(row, rightwards, leftwards, strict=True):
        node.x = (right + left) / 2


def _line(path: Sequence[_Node]) -> str:
    """The line of a move, with a gap for its probability and a head at its end."""
    parts, here = [], path[0]
    for node in path[1:]:
        start, end = here.y + here.height / 2, node.y - node.height / 2 - (5 if node is path[-1] else 0)
        middle = (start + end) / 2
        begin = f"M{here.x:.0f} {start:.0f}" if here.kind != "line" else ""
        parts.append(f"{begin}C{here.x:.0f} {middle:.0f} {node.x:.0f} {middle:.0f} {node.x:.0f} {end:.0f}")
        here = node
    return f'<path class="line" d="{"".join(parts)}" marker-end="url(#head)"/>'


# ------------------------------------------------------------------------------------------------------------------- bars


def bars(series: Mapping[str, Sequence[float] | NDArray[np.float64]], title: str) -> str:
    """Draw a probability at each position, for one or a few kinds of lists side by side.

    Args:
        series: ``(K,)`` values by the name of the kind, at most three.
        title: what the picture shows, for readers who do not see it.

    Returns:
        SVG.
    """
    n_positions = len(next(iter(series.values())))
    bar, top, height = 28.0, 20.0 * len(series) + 26, 170.0
    group = bar * len(series) + 20
    width, bottom = max(60 + group * n_positions, 380.0), top + height
    most = max(0.1, max(max(values) for values in series.values()))
    shapes = [f'<path class="line" d="M44 {bottom:.0f}H{width - 8:.0f}"/>']
    for number, (name, values) in enumerate(series.items()):
        y = 8 + 20 * number
        shapes.append(f'<rect class="s{number}" x="44" y="{y}" width="14" height="12" rx="2"/>')
        shapes.append(_text(66, y + 11, name, "small", anchor="start"))
        for position, value in enumerate(values):
            x, tall = 54 + group * position + bar * number, height * value / most
            shapes.append(
                f'<rect class="s{number}" x="{x:.1f}" y="{bottom - tall:.1f}" width="{bar - 2:.1f}" height="{tall:.1f}"/>'
            )
            shapes.append(_text(x + bar / 2 - 1, bottom - tall - 4, f"{value:.2f}".lstrip("0"), "small"))
    for position in range(n_positions):
        shapes.append(_text(54 + group * position + bar * len(series) / 2, bottom + 18, str(position + 1)))
    shapes.append(_text(width / 2, bottom + 38, "position", "small"))
    shapes.append(
        f'<text class="small" transform="translate(24 {top + height / 2:.0f}) rotate(-90)">probability of a click</text>'
    )
    return _svg(width, bottom + 46, title, shapes)


# ------------------------------------------------------------------------------------------------------------------ parts


INDEX = re.compile(r"_(\{[^}]*\}|\w)")


def _plain(text: str) -> str:
    """What is seen of a text with indices."""
    return INDEX.sub(lambda index: index[1].strip("{}"), text)


def _text(x: float, y: float, text: str, kind: str = "", anchor: str = "") -> str:
    """A text with indices as mathematics has them, ``v_k`` or ``γ_{k,k'}``."""
    style = (f' class="{kind}"' if kind else "") + (f' style="text-anchor: {anchor}"' if anchor else "")
    parts, level = [], 0
    for number, piece in enumerate(INDEX.split(text.replace(" - ", " − "))):
        depth, words = 4 * (number % 2), escape(piece.strip("{}"), quote=False)
        if words and depth != level:
            size = ' font-size="80%"' if depth else ""
            words, level = f'<tspan dy="{depth - level}"{size}>{words}</tspan>', depth
        parts.append(words)
    return f'<text x="{x:.0f}" y="{y:.0f}"{style}>{"".join(parts)}</text>'


def _svg(width: float, height: float, title: str, shapes: Sequence[str]) -> str:
    size = f'width="{width:.0f}" height="{height:.0f}" viewBox="0 0 {width:.0f} {height:.0f}"'
    head = (
        '<defs><marker id="head" viewBox="0 0 8 8" refX="3" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
        '<path class="head" d="M0 0L8 4L0 8z"/></marker></defs>'
    )
    lines = [f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img">', f"<title>{escape(title)}</title>"]
    return "\n".join([*lines, f"<style>{STYLE}</style>", head, *shapes, "</svg>"]) + "\n"
