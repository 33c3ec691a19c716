package a

// Load reads the file.
//
// More about it.
func Load(p string) int {
	x := open(p)
	return x
}
