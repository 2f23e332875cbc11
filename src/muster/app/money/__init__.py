"""What a campaign has cost and will cost."""
