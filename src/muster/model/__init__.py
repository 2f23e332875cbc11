"""The words of Muster as frozen types; standard library only."""
