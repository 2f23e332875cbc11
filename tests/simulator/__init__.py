"""The simulator: the real judge, planner and controller in a made-up world, seeded, in compressed time."""
