"""The endpoints: health, metrics, configuration, profiles, the scheduler's own pages."""
