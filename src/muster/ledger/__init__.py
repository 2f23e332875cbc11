"""What each slot-second was spent on, and its price."""
