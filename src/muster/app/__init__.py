"""What a person asks for, one file per verb."""
