"""Findings of checks, and their report for a terminal."""
