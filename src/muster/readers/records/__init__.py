"""Files that runs write their steps into, read as they grow: each look costs what was added since the last one."""
