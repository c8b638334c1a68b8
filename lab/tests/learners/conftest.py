"""torch-ac fixes the start method of all processes when it is imported, which fails where it is fixed already."""

import contextlib
from unittest import mock

with mock.patch("multiprocessing.set_start_method"), contextlib.suppress(ImportError):
    import torch_ac  # noqa: F401
