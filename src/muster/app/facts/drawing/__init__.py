"""What all figures share: style, page, names as drawn."""
