import pytest

# The contract's assertions explain themselves as those of a test module do.
pytest.register_assert_rewrite("tests.stores.contract")
