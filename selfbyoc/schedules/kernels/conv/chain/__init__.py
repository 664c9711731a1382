"""Two convolutions melted by blocks of rows."""
