"""What commands share: options, errors, tables, colour, choosing cells."""
