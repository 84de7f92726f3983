"""What it costs to send an order."""

FREE_FROM_CENTS = 5_000
FLAT_RATE_CENTS = 490


def shipping_cents(goods_cents: int) -> int:
    """Shipping for goods of this value."""
    if goods_cents > FREE_FROM_CENTS:
        return 0
    return FLAT_RATE_CENTS
