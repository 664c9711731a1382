"""Models of transformers and torchvision with open sizes, exported in three ways."""
