"""What is asked across features: why, plan, the status table, packs, the demo."""
