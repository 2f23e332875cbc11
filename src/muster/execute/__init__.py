"""Doors for processes of 0.1, whose commands name these files. Nothing else imports them."""
