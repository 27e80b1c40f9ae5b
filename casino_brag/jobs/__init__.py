"""What has to be done without anybody asking: payouts, cancellations, interrupted rounds, webhooks, the log."""
