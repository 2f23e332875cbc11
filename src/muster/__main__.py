"""`python -m muster`."""

from muster.faces.cli import main

main()
