"""The licenses of a repository as SPDX ids, and whether they permit to redistribute parts of its code.

Whole texts are recognized by `identify` (35 licenses of choosealicense.com, less than 5 % edited), notices and combined
texts by sentences that only one license has.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterable, Mapping
from functools import lru_cache
from pathlib import Path

from ncs.errors import MissingExtra

_IDS = (
    "0BSD AFL-3.0 AGPL-3.0 Apache-2.0 Artistic-2.0 BSD-2-Clause BSD-3-Clause BSD-3-Clause-Clear BSL-1.0 CC0-1.0 "
    "CNRI-Python ECL-2.0 EPL-1.0 EPL-2.0 EUPL-1.1 EUPL-1.2 GPL-2.0 GPL-3.0 ISC LGPL-2.1 LGPL-3.0 MIT MIT-0 MIT-CMU "
    "MPL-2.0 MS-PL MS-RL NCSA OSL-3.0 PSF-2.0 PostgreSQL Python-2.0 UPL-1.0 Unlicense WTFPL Zlib"
)
ALLOWED = frozenset(_IDS.split())
"""Licenses that permit redistribution of parts; some require the license text, so every function names its license."""
UNKNOWN = "unknown"
"""There is a license file, but its license was not recognized."""
FILE = re.compile(r"(?:un)?licen[cs]e(?:[-._].*)?|copying(?:[-._].*)?", re.IGNORECASE)
_PHRASES: tuple[tuple[str, str], ...] = (
    ("Apache-2.0", r"apache license,? version 2\.0|apache-2\.0"),
    ("MIT", r"permission is hereby granted, free of charge, to any person obtaining a copy"),
    (
        "ISC",
        r"permission to use, copy, modify,? (?:and/or|and) distribute this software for any purpose",
    ),
    ("BSD", r"redistribution and use in source and binary forms, with or without modification, are permitted"),
    ("PSF-2.0", r"psf license agreement for python|python software foundation license version 2"),
    ("MPL-2.0", r"mozilla public license,? (?:version|v\.) ?2\.0"),
    ("Unlicense", r"this is free and unencumbered software released into the public domain"),
    ("AGPL-3.0", r"gnu affero general public license version 3"),
    ("LGPL-3.0", r"gnu lesser general public license version 3"),
    ("LGPL-2.1", r"gnu lesser general public license version 2\.1"),
    ("GPL-3.0", r"gnu general public license version 3|general public license as published by.{1,80}either version 3"),
    ("GPL-2.0", r"gnu general public license version 2|general public license as published by.{1,80}either version 2"),
)
_THIRD_CLAUSE = re.compile(r"neither the names? of|may not be used to endorse or promote|may be used to endorse")
_SHORT = {
    "MIT": "mit|mit license|the mit license|expat",
    "Apache-2.0": "apache|apache 2|apache 2.0|apache-2.0|apache license 2.0|apache license, version 2.0"
    "|apache software license|apache software license 2.0|apache license version 2.0|apache v2",
    "BSD-3-Clause": "bsd|bsd license|new bsd|bsd-3-clause|bsd 3-clause|3-clause bsd|bsd 3-clause license|modified bsd",
    "BSD-2-Clause": "bsd-2-clause|simplified bsd",
    "PSF-2.0": "psf|psf-2.0|python software foundation license|psfl",
    "ISC": "isc|isc license|isc license (iscl)",
    "MPL-2.0": "mpl-2.0|mpl 2.0|mozilla public license 2.0 (mpl 2.0)",
    "Unlicense": "unlicense|the unlicense (unlicense)",
    "LGPL-3.0": "lgplv3|gnu lesser general public license v3 (lgplv3)",
    "GPL-3.0": "gplv3|gnu general public license v3 (gplv3)",
    "GPL-2.0": "gplv2|gnu general public license v2 (gplv2)",
    "Zlib": "zlib|zlib/libpng license",
}
_BY_SHORT_NAME: Mapping[str, str] = {name: id for id, names in _SHORT.items() for name in names.split("|")}


def license_expression(texts: Iterable[str]) -> str:
    """The SPDX ids of the license files of a repository, joined by AND; UNKNOWN where none is known, "" for no file."""
    ids = [identify_license(text) for text in texts]
    known_ids = sorted({id for id in ids if id})
    return " AND ".join(known_ids) if known_ids else UNKNOWN if ids else ""


@lru_cache(4096)
def identify_license(text: str) -> str:
    """The SPDX id of a license's text or notice; "" where it is not known.

    Raises MissingExtra where `identify` is not installed: without it other repositories would pass.
    """
    return (_by_text(text) if len(text) < 200_000 else "") or _by_phrase(text)


def _by_text(text: str) -> str:
    try:
        import ukkonen  # noqa: F401  (identify imports it late)
        from identify.identify import license_id
    except ImportError:
        raise MissingExtra(
            "recognizing licenses needs identify; install it with: pip install 'neural-code-search[corpora]'"
        ) from None
    with tempfile.TemporaryDirectory(prefix="ncs-license-") as folder:
        path = Path(folder) / "LICENSE"
        path.write_text(text, encoding="utf-8", errors="replace")
        spdx: str | None = license_id(str(path))
    return spdx or ""


def _by_phrase(text: str) -> str:
    """The license whose sentence comes first.

    >>> _by_phrase("Licensed under the Apache License,\\n  Version 2.0 (the License)")
    'Apache-2.0'
    """
    plain = re.sub(r"[\s*#\"'“”`]+", " ", text.lower())
    hits = [(match.start(), id) for id, phrase in _PHRASES if (match := re.search(phrase, plain))]
    if not hits:
        return ""
    id = min(hits)[1]
    if id != "BSD":
        return id
    return "BSD-3-Clause" if _THIRD_CLAUSE.search(plain) else "BSD-2-Clause"


def spdx_id(short: str) -> str:
    """The SPDX id of what people write into the metadata of a package; "" where it is not known.

    >>> spdx_id("The MIT License"), spdx_id("License :: OSI Approved :: Apache Software License")
    ('MIT', 'Apache-2.0')
    """
    name = short.rpartition(" :: ")[2].strip()
    return name if name in ALLOWED else _BY_SHORT_NAME.get(name.lower(), "")


def permits(expression: str, allowed: frozenset[str] = ALLOWED) -> bool:
    """Whether an SPDX expression is of allowed licenses: any of OR, all of AND; with both and brackets, all.

    >>> permits("MIT OR Elastic-2.0"), permits("MIT AND Elastic-2.0"), permits("GPL-2.0-or-later WITH X-exception")
    (True, False, True)
    >>> permits(""), permits("(MIT OR Elastic-2.0) AND ISC")
    (False, False)
    """
    plain = re.sub(r" WITH \S+", "", expression)
    if "(" in plain and " AND " in plain:
        plain = re.sub(r"[()]| AND | OR ", " ", plain)
        return all(_is_allowed(id, allowed) for id in plain.split())
    return any(
        all(_is_allowed(id, allowed) for id in option.split(" AND ")) for option in plain.strip("()").split(" OR ")
    )


def _is_allowed(id: str, allowed: frozenset[str]) -> bool:
    plain = id.strip("() ")
    return plain in allowed or re.sub(r"-only$|-or-later$|\+$", "", plain) in allowed
