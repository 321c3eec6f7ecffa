"""How the states of monitors are locked."""

from pathlib import Path

import app


def test_no_statement_locks_one_of_the_tables_that_it_reads():
    """On PostgreSQL, the rows of the others would be as they were before a wait for the lock.
    ``lock_states`` locks, and the next statement reads.
    """
    sources = Path(app.__file__).parent.rglob("*.py")
    assert [path for path in sources if "with_for_update(of=" in path.read_text()] == []
