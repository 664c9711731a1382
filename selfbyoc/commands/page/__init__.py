"""What partitioning decided, as drawings and one HTML page."""
