"""What decoding JSON of unknown origin raises. msgspec lets two more through than its own errors."""

from __future__ import annotations

import msgspec

NO_JSON = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)  # a text that is no UTF-8; one nested too deep
