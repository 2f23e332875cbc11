"""The promise: what is planned, judged, decided and remembered."""
