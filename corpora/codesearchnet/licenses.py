"""The licenses of a repository as SPDX ids, and whether they permit to redistribute parts of its code."""

from __future__ import annotations

import re
from collections.abc import Iterable

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
_PHRASES = {
    "Apache-2.0": r"apache license,? version 2\.0|apache-2\.0",
    "MIT": r"permission is hereby granted, free of charge, to any person obtaining a copy(?! of the font)",
    "ISC": r"permission to use, copy, modify,? (?:and/or|and) distribute this software for any purpose",
    "0BSD": r"permission to use, copy, modify,? (?:and/or|and) distribute this software for any purpose with or without"
    r" fee is hereby granted\.",
    "BSD": r"redistribution and use in source and binary forms, with or without modification, are permitted",
    "BSD-3-Clause-Clear": r"clear bsd license",
    "PSF-2.0": r"psf license agreement for python|python software foundation license version 2",
    "MPL-2.0": r"mozilla public license,? (?:version|v\.) ?2\.0",
    "Unlicense": r"this is free and unencumbered software released into the public domain",
    "AGPL-3.0": r"gnu affero general public license version 3",
    "LGPL-3.0": r"gnu lesser general public license version 3",
    "LGPL-2.1": r"gnu lesser general public license version 2\.1",
    "GPL-3.0": r"gnu general public license version 3|general public license as published by.{1,80}either version 3",
    "GPL-2.0": r"gnu general public license version 2|general public license as published by.{1,80}either version 2",
    "BSL-1.0": r"boost software license - version 1\.0",
    "Zlib": r"permission is granted to anyone to use this software for any purpose",
    "CC0-1.0": r"cc0 1\.0 universal",
    "EPL-1.0": r"eclipse public license - v ?1\.0",
    "EPL-2.0": r"eclipse public license - v ?2\.0",
    "EUPL-1.1": r"european union public licence v\. ?1\.1",
    "EUPL-1.2": r"european union public licence v\. ?1\.2",
    "AFL-3.0": r"academic free license \( ?afl ?\) v\. 3\.0",
    "OSL-3.0": r"open software license \( ?osl ?\) v\.? 3\.0",
    "ECL-2.0": r"educational community license,? version 2\.0",
    "Artistic-2.0": r"the artistic license 2\.0",
    "MS-PL": r"microsoft public license \(ms-pl\)",
    "MS-RL": r"microsoft reciprocal license \(ms-rl\)",
    "NCSA": r"university of illinois/ncsa open source license",
    "PostgreSQL": r"postgresql license",
    "UPL-1.0": r"the universal permissive license \(upl\),? version 1\.0",
    "WTFPL": r"do what the fuck you want to public license",
}
"""license -> a sentence that only it has, in lower case, without quotation marks and stars."""
_THIRD_CLAUSE = re.compile(r"neither the names? of|may not be used to endorse or promote|may be used to endorse")


def license_expression(texts: Iterable[str]) -> str:
    """The SPDX ids of the license files of a repository, joined by AND; UNKNOWN where none is known, "" for no file."""
    ids = [identify_license(text) for text in texts]
    return " AND ".join(sorted({id for id in ids if id})) or (UNKNOWN if ids else "")


def identify_license(text: str) -> str:
    """The SPDX id of a license's text or notice: the one whose sentence comes first; "" where it is not known.

    >>> identify_license("Licensed under the Apache License,\\n  Version 2.0 (the License)")
    'Apache-2.0'
    """
    plain = re.sub(r"[\s*#\"'“”`]+", " ", text.lower())
    hits = [(match.start(), id) for id, phrase in _PHRASES.items() if (match := re.search(phrase, plain))]
    id = min(hits)[1] if hits else ""
    if id == "BSD":
        return "BSD-3-Clause" if _THIRD_CLAUSE.search(plain) else "BSD-2-Clause"
    return id


def permits(expression: str, allowed: frozenset[str] = ALLOWED) -> bool:
    """Whether an SPDX expression is of allowed licenses: one of OR; with an AND in it, all.

    >>> permits("MIT OR Elastic-2.0"), permits("MIT AND Elastic-2.0"), permits("GPL-2.0-or-later WITH X-exception")
    (True, False, True)
    >>> permits(""), permits("(MIT OR Elastic-2.0) AND ISC"), permits("MIT AND ISC"), permits("MIT", frozenset(["ISC"]))
    (False, False, True, False)
    """
    ids = re.sub(r"[()]| WITH \S+", "", expression)
    is_allowed = [{id, re.sub(r"-only$|-or-later$|\+$", "", id)} & allowed for id in re.split(" AND | OR ", ids)]
    return all(is_allowed) if " AND " in ids else any(is_allowed)
