"""What was found in a campaign, gathered once: the facts that reports, records, bills and journals draw from."""
