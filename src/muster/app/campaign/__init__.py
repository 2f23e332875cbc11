"""A campaign: opening and checking it, judging its cells, and the verbs that act on them."""
