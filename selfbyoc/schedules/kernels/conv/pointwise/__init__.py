"""1x1 convolutions whose lanes are the flat pixels of an image."""
