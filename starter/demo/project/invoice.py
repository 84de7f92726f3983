"""What a customer pays."""

from shipping import shipping_cents


def total_cents(prices_cents: list[int]) -> int:
    """Goods and shipping together."""
    goods = sum(prices_cents)
    return goods + shipping_cents(goods)
