"""Dense layers and normalisations over tiles of rows."""
