"""Staff: people and their roles, how they prove who they are, and what takes two of them."""
