"""Doors for processes of 0.1, whose commands name this package. Nothing else imports it."""
