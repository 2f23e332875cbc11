"""The protocols between the pure rooms and the world."""
