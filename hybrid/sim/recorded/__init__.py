"""What a running controller kept of its decisions: made again, or turned into a trace."""
