"""Campaign and state in; what is missing, what may start and why the rest does not, estimates out. Pure."""
