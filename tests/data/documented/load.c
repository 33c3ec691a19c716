/**
 * \brief Reads the file.
 *
 * \param p where
 */
int load(char *p) {
    int x = open(p);
    return x;
}
