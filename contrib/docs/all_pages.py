"""All reference pages that are made from the code."""

from __future__ import annotations

from typing import Final

from contrib.docs import (
    make_api_versions,
    make_causes,
    make_configuration,
    make_exit_codes,
    make_flags,
    make_hooks,
    make_metrics,
    make_versions,
)
from contrib.docs.api_pages import api_pages
from contrib.docs.pages import Page

PAGES: Final[tuple[Page, ...]] = (
    make_api_versions.PAGE,
    make_hooks.PAGE,
    make_flags.PAGE,
    make_configuration.PAGE,
    make_causes.PAGE,
    make_exit_codes.PAGE,
    make_metrics.PAGE,
    make_versions.PAGE,
    *(one.page for one in api_pages()),
)
