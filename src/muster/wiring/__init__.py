"""Entry points under the names of 0.1, for processes of that version. Nothing else imports them."""
