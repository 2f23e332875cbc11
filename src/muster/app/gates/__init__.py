"""Gates and stages of trainings: what their records say."""
