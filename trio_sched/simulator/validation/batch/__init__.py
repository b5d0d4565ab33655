"""Rules for jobs and cron jobs."""
