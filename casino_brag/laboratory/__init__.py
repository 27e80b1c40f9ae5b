"""What a test laboratory asks of the random numbers, answered by the code that deals.

Nothing here ever deals a live round.
"""
