"""What one run of any folder does now, without a campaign."""
