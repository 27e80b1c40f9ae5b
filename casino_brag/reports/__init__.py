"""Reports over the whole installation, for staff and auditors: JSON, CSV, and pages to print."""
