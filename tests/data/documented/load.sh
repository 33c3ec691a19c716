# Reads the file.
#
# More.
load() {
  x=$(open "$1")
  echo "$x"
}
