"""What is asked across features: status, why, plan, wait, assert, export, ls."""
