"""Measurements of the running product, each beside floors measured in the same run.

chat     the delay and the CPU that we add to a model's streamed reply
recall   what a search among 1,000 and 10,000 memories costs
pages    the server's time for the main pages of a person with 1,000 sessions
"""
