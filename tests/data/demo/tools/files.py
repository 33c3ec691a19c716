"""Reading files."""


def read_text_file(path, encoding="utf-8"):
    """Read a whole text file from disk."""
    with open(path, encoding=encoding) as file:
        return file.read()


def count_lines(path):
    """How many lines a file has."""
    return len(read_text_file(path).splitlines())


class Archive:
    def extract_all(self, target):
        """Unpack every member into the target folder."""
        for member in self.members():
            member.extract(target)
