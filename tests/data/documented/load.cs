class A {
    /// <summary>
    /// Reads the file.
    /// </summary>
    /// <param name="p">where</param>
    public int Load(string p) {
        var x = Open(p);
        return x;
    }
}
