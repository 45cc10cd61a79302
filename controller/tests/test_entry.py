"""Cookies tell whose an entry is."""

from trunkline_controller.flows.entry import COOKIE, COOKIE_MASK, Owner, cookie


def test_a_cookie_names_its_owner_and_fits_64_bits():
    for owner in Owner:
        made = cookie(owner, 0xFFFFFFFF)
        assert made & COOKIE_MASK == COOKIE
        assert made >> 32 & 0xFFFF == owner
        assert made < 1 << 64
