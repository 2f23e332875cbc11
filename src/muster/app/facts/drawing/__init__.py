"""The drawing kit of every figure: style, page, context."""
