"""Operations ask something of a session from outside."""
