"""What runs inside a job: the wrapper, and the answers to requests to save."""
