"""Objects of other API versions, read and answered as the stored version."""
