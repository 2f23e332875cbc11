"""How people and programs reach Muster: parse, call app, show."""
