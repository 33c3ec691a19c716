/// Reads the file.
/// @param p where
int A::load(char *p) {
    int x = open(p);
    return x;
}
