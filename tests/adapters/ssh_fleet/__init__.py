"""Hosts over SSH: real OpenSSH, real node program, fake Ray."""
