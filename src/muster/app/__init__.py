"""What people ask for, one package per feature. A function here takes values and returns values; it parses no command
line and prints nothing.
"""
