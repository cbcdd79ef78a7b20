// Package testmain has what a TestMain sets for the tests of its package. Only tests import
// it.
package testmain

import (
	"flag"
	"os"
	"runtime/debug"
)

// Waiting is for packages whose tests mostly wait, such as for processes: twelve run at the
// same time, unless the command line says another number.
func Waiting() {
	flag.Parse()
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "test.parallel" })
	if !given {
		_ = flag.Set("test.parallel", "12") // the flag exists in every test binary
	}
}

// Allocating is for packages whose tests allocate much and keep little: collecting garbage
// less often saves a quarter of their time.
func Allocating() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(400)
	}
}
