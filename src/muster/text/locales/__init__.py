"""The texts of reports in English and Chinese."""
