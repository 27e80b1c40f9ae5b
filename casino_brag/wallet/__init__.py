"""The built-in wallet: players' accounts in operators' ledgers, moved by double entry."""
