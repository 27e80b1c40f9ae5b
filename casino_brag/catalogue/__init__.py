"""What is offered and to whom: paytable versions and games, operators and their players' sessions."""
