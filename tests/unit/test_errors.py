from __future__ import annotations

import pytest

import mainstem
from mainstem import MainstemError
from mainstem.errors import mask

EXIT_CODES = {
    "UsageError": 2,
    "ConflictError": 3,
    "ForeignCommit": 3,
    "ValidationFailed": 4,
    "GateFailed": 4,
    "TableNotFound": 5,
    "VersionNotFound": 5,
    "SchemaDrift": 6,
    "UnsupportedFeature": 7,
    "CorruptLog": 8,
    "CorruptCatalog": 8,
    "EngineBusy": 75,
    "CommitUnknown": 75,
}


@pytest.mark.parametrize(("name", "code"), EXIT_CODES.items())
def test_every_error_has_the_one_root_and_its_exit_code(name: str, code: int) -> None:
    error = getattr(mainstem, name)
    assert issubclass(error, MainstemError)
    assert error.exit_code == code
    assert error.retryable is (code == 75)


def test_an_error_says_what_happened_and_what_comes_next() -> None:
    error = MainstemError("no such table.", hint="Run: mainstem tables", table="x")
    assert str(error) == "no such table. Run: mainstem tables"
    assert error.as_dict() == {
        "code": "error",
        "message": "no such table.",
        "hint": "Run: mainstem tables",
        "retryable": False,
        "table": "x",
    }


@pytest.mark.parametrize(
    "text",
    [
        "postgresql://me:s3ntinel@db/lake",
        "cannot open postgresql://me:s3ntinel@db:5432/lake?schema=x, sorry",
        "deltasql://postgres/me:s3ntinel@db/lake/public",
        "password=s3ntinel host=db",
        "{'password': 's3ntinel'}",
    ],
)
def test_a_password_shows_in_no_message(text: str) -> None:
    error = MainstemError(text, hint=text, uri=text)
    assert "s3ntinel" not in f"{error} {error!r} {error.as_dict()} {mask(text)}"


def test_text_without_a_password_stays_as_it_is() -> None:
    text = "file:///lake/a@b:c/part-0.parquet at 12:30 by me@example.org"
    assert mask(text) == text
