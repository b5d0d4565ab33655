"""Writes all reference pages again: ``python -m contrib.docs``."""

from contrib.docs.all_pages import PAGES

for page in PAGES:
    page.write()
