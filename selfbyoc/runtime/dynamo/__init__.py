"""A backend of torch.compile: torch finds `backend.backend` by an entry point. Needs PyTorch."""
