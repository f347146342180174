"""A practitioner's choice of a mixture at a fixed budget of FLOPs, simulated many times on trained models."""
