"""What an operator runs against its own wallet before this service does: named checks over HTTP, and a report."""
