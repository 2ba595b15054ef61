"""Finds the steps of inference, whether or not engines name them, and the requests and tokens of each step."""
