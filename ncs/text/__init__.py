"""Words: tokenizing, stems, stop words, spelling and vocabularies."""
