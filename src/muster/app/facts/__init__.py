"""The one fact base that reports draw from."""
