"""Adds up the results that the test runs left behind and closes with one line."""

from __future__ import annotations

import sys
from pathlib import Path
from xml.etree import ElementTree


def main(folder: Path) -> int:
    passed = failed = skipped = 0
    for report in sorted(folder.glob("*.xml")):
        counts = {"tests": 0, "failures": 0, "errors": 0, "skipped": 0}
        for suite in ElementTree.parse(report).getroot().iter("testsuite"):
            for key in counts:
                counts[key] += int(suite.get(key, 0))
        bad = counts["failures"] + counts["errors"]
        good = counts["tests"] - bad - counts["skipped"]
        print(f"{report.stem:<20} {good} passed, {bad} failed, {counts['skipped']} skipped")
        passed, failed, skipped = passed + good, failed + bad, skipped + counts["skipped"]
    print(f"{passed} passed, {failed} failed, {skipped} skipped")
    return failed > 0 or passed == 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
