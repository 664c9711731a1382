"""What partitioning decided, as terminal tables, drawings and one HTML page."""
