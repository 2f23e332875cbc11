"""The one place that builds concrete things and plugs them together."""
