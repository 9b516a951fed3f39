"""The texts that a newcomer reads: what they link to is there, and each dependency has its reason."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()


def test_every_file_that_the_texts_link_to_is_there() -> None:
    for text in (README, (ROOT / "CONTRIBUTING.md").read_text()):
        for target in re.findall(r"\]\(([^)#:]+)\)", text):
            assert (ROOT / target).exists(), target


def test_every_dependency_has_its_line() -> None:
    import configparser

    config = configparser.ConfigParser()
    config.read(ROOT / "setup.cfg")
    wanted = config["options"]["install_requires"] + "".join(config["options.extras_require"].values())
    named = {re.split(r"[ \[<>=]", line)[0] for line in wanted.splitlines() if line.strip() and "mainstem[" not in line}
    text = (ROOT / "docs" / "dependencies.md").read_text()
    assert {name for name in named if name not in text} == set()
