"""What the API server refuses: shapes of all kinds from one table, and the rules of each kind."""
