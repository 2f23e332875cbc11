"""An ensemble of small networks that predict how the state changes, learned from the robot's own steps."""

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float32]

INPUTS, OUTPUTS = 6, 4  # state and action in; change of state out
SCALE = np.array([0.1, 0.1, 0.3, 0.3], np.float32)  # the usual size of a change, so that errors weigh alike


class Ensemble:
    """One hidden layer per member, all members in one array: (members, in, out). Trained by Adam."""

    def __init__(self, members: int, hidden: int, learning_rate: float, rng: np.random.Generator) -> None:
        self.members, self.learning_rate, self.updates = members, learning_rate, 0

        def normal(*shape: int) -> Array:
            return rng.standard_normal(shape, np.float32)

        self.weights: dict[str, Array] = {
            "w1": normal(members, INPUTS, hidden) / np.float32(INPUTS**0.5),
            "b1": normal(members, 1, hidden) * np.float32(0.1),
            "w2": normal(members, hidden, OUTPUTS) / np.float32(hidden**0.5),
            "b2": np.zeros((members, 1, OUTPUTS), np.float32),
        }
        self.first = {name: np.zeros_like(w) for name, w in self.weights.items()}
        self.second = {name: np.zeros_like(w) for name, w in self.weights.items()}

    def predict(self, state: Array, action: Array) -> Array:
        """Next states (members, rows, 4) from states (members, rows, 4) and actions (1, rows, 2)."""
        w = self.weights
        # Splitting the first layer spares a concatenation of large arrays: the planner's time goes here.
        hidden: Array = state @ w["w1"][:, :4]
        hidden += action @ w["w1"][:, 4:]
        hidden += w["b1"]
        np.tanh(hidden, out=hidden)
        change: Array = hidden @ w["w2"]
        change += w["b2"]
        change *= SCALE
        change += state
        return change

    def update(self, inputs: Array, changes: Array, counts: Array) -> float:
        """One Adam step; `counts` (members, rows): how often each member's bootstrap sample holds a row."""
        w = self.weights
        hidden = np.tanh(inputs @ w["w1"] + w["b1"])
        error = hidden @ w["w2"] + w["b2"] - changes / SCALE
        d_out = error * counts[:, :, None] * np.float32(2 / inputs.shape[-2])
        d_hidden = d_out @ w["w2"].transpose(0, 2, 1) * (1 - hidden * hidden)
        self._adam(
            {
                "w1": inputs.swapaxes(-1, -2) @ d_hidden,
                "b1": d_hidden.sum(axis=1, keepdims=True),
                "w2": hidden.transpose(0, 2, 1) @ d_out,
                "b2": d_out.sum(axis=1, keepdims=True),
            }
        )
        return float((error * error).mean())

    def _adam(self, gradients: dict[str, Array]) -> None:
        self.updates += 1
        rate = self.learning_rate * (1 - 0.999**self.updates) ** 0.5 / (1 - 0.9**self.updates)
        for name, g in gradients.items():
            self.first[name] += np.float32(0.1) * (g - self.first[name])
            self.second[name] += np.float32(0.001) * (g * g - self.second[name])
            slope = self.first[name] / (np.sqrt(self.second[name]) + np.float32(1e-8))
            self.weights[name] -= np.float32(rate) * slope

    def arrays(self) -> dict[str, Array]:
        """All that a checkpoint has to hold, by name."""
        parts = {"weights": self.weights, "first": self.first, "second": self.second}
        return {f"{part}.{name}": array for part, arrays in parts.items() for name, array in arrays.items()}

    def load(self, arrays: dict[str, Array], updates: int) -> None:
        for name, mine in self.arrays().items():
            mine[...] = arrays[name]
        self.updates = updates
