"""Stub providers: the real ones' schemas, without their clouds."""
