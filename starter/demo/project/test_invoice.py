"""The rules of the README, as tests."""

import unittest

from invoice import total_cents


class TheTotalOfAnInvoice(unittest.TestCase):
    def test_small_orders_pay_for_shipping(self) -> None:
        self.assertEqual(total_cents([1_200, 350]), 1_550 + 490)

    def test_large_orders_ship_free(self) -> None:
        self.assertEqual(total_cents([4_999, 2]), 5_001)

    def test_orders_of_exactly_fifty_ship_free(self) -> None:
        self.assertEqual(total_cents([2_500, 2_500]), 5_000)


if __name__ == "__main__":
    unittest.main()
