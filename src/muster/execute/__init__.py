"""Entry points at the paths of 0.1: processes, crontab lines and services of that version name them. Nothing else
imports them.
"""
