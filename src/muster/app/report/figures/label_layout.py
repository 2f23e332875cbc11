"""Where labels go so that none lies on another. Lengths in inches."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

LinkLine = tuple[tuple[float, float], tuple[float, float]]


@dataclass(frozen=True, slots=True)
class LabelBox:
    left: float
    bottom: float
    width: float
    height: float

    @property
    def middle(self) -> tuple[float, float]:
        return self.left + self.width / 2, self.bottom + self.height / 2


def spread_labels(targets: Sequence[float], gap: float, low: float, high: float) -> list[float]:
    """As near to the targets as `gap` allows, in their order, inside low..high while there is room."""
    order = sorted(range(len(targets)), key=lambda index: targets[index])
    crowds: list[list[float]] = []  # of those that touch: where each would have the first of them
    for rank, index in enumerate(order):
        crowds.append([targets[index] - rank * gap])
        while len(crowds) > 1 and _mean_of_values(crowds[-2]) > _mean_of_values(crowds[-1]):
            crowds[-2:] = [crowds[-2] + crowds[-1]]
    firsts = [_mean_of_values(crowd) for crowd in crowds for _ in crowd]
    most = max(low, high - gap * (len(targets) - 1))
    found = [0.0] * len(targets)
    for rank, index in enumerate(order):
        found[index] = min(max(firsts[rank], low), most) + rank * gap
    return found


def _mean_of_values(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def place_labels(
    anchors: Sequence[tuple[float, float]],
    sizes: Sequence[tuple[float, float]],
    obstacles: Sequence[LabelBox],
    frame: LabelBox,
) -> list[LabelBox]:
    """A box for each label near its anchor: the one that covers least. Those in a crowd choose first."""
    crowd = [sum(math.dist(one, other) for other in anchors) for one in anchors]
    found: dict[int, LabelBox] = {}
    taken: list[LabelBox] = []  # labels and the lines that lead to them
    for index in sorted(range(len(anchors)), key=lambda index: crowd[index]):
        anchor = anchors[index]
        candidates = _boxes_around_anchor(anchor, sizes[index])
        found[index] = min(candidates, key=lambda box: _cost_of_label_box(box, anchor, taken, obstacles, frame))
        taken += [found[index], *_boxes_along_line(shortest_link(anchor, found[index]))]
    return [found[index] for index in range(len(anchors))]


def shortest_link(anchor: tuple[float, float], box: LabelBox) -> LinkLine:
    """The shortest line from one to the other."""
    x = min(max(anchor[0], box.left), box.left + box.width)
    y = min(max(anchor[1], box.bottom), box.bottom + box.height)
    return anchor, (x, y)


def _boxes_along_line(line: LinkLine) -> list[LabelBox]:
    (x, y), (end_x, end_y) = line
    count = max(1, round(math.dist(*line) / 0.08))
    shares = [(step + 0.5) / count for step in range(count)]
    return [LabelBox(x + (end_x - x) * s - 0.03, y + (end_y - y) * s - 0.03, 0.06, 0.06) for s in shares]


def _boxes_around_anchor(anchor: tuple[float, float], size: tuple[float, float]) -> list[LabelBox]:
    (x, y), (width, height) = anchor, size
    found = []
    for distance in (0.12, 0.25, 0.4, 0.6, 0.85, 1.15):
        for turn in (1, 7, 3, 5, 0, 4, 2, 6):  # eighths of a circle; slantwise first: error bars are straight
            dx, dy = math.cos(turn * math.pi / 4), math.sin(turn * math.pi / 4)
            middle_x = x + dx * distance + math.copysign(width / 2, dx) * (abs(dx) > 0.1)
            middle_y = y + dy * distance + math.copysign(height / 2, dy) * (abs(dy) > 0.1)
            found.append(LabelBox(middle_x - width / 2, middle_y - height / 2, width, height))
    return found


def _cost_of_label_box(
    box: LabelBox,
    anchor: tuple[float, float],
    placed: Sequence[LabelBox],
    obstacles: Sequence[LabelBox],
    frame: LabelBox,
) -> float:
    outside = box.width * box.height - overlap_area(box, [frame])
    line = shortest_link(anchor, box)
    crossed = sum(overlap_area(bit, placed) for bit in _boxes_along_line(line))
    over = 20 * overlap_area(box, placed) + 2 * overlap_area(box, obstacles)
    return 1000 * outside + over + 100 * crossed + 0.3 * math.dist(*line)


def overlap_area(box: LabelBox, others: Sequence[LabelBox]) -> float:
    """The area of it that lies on others."""
    if not others:
        return 0.0
    sides = np.array([(o.left, o.bottom, o.left + o.width, o.bottom + o.height) for o in others])
    wide = np.minimum(box.left + box.width, sides[:, 2]) - np.maximum(box.left, sides[:, 0])
    high = np.minimum(box.bottom + box.height, sides[:, 3]) - np.maximum(box.bottom, sides[:, 1])
    return float(np.sum(np.clip(wide, 0, None) * np.clip(high, 0, None)))
