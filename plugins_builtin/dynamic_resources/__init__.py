"""DynamicResources: devices that are claimed."""
