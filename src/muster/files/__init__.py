"""The safe opener, atomic writes, digests, and the layout of `.muster`."""
