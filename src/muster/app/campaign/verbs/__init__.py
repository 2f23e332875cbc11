"""What people do to a campaign: up, stop, retry, redo, accept, give up, note, clean."""
