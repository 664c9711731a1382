"""Dense layers whose weight has few bits, by rows of floats and by rows of levels."""
