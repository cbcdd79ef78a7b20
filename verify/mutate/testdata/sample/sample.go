// Package sample is mutated by the tests of mutate.
package sample

import (
	"errors"
	"time"
)

const limit = 10

var errLimit = errors.New("the limit is exceeded")

// Variables are mutated too, although they are not functions.
var Names = []string{"first", "prose is not changed"}

// Max is tested, but no test can distinguish >= from >.
func Max(a, b int) int {
	if a > b {
		return a
	}
	return b
}

// Forgotten has no test.
func Forgotten(ok bool) (bool, error) {
	defer print()
	if !ok && len(Names) > limit || ok {
		return false, errLimit
	}
	total := time.Duration(0)
	for i := range 3 {
		total += time.Duration(i) * time.Second
	}
	switch total {
	case time.Minute, time.Hour:
		return true, nil
	default:
	}
	return total == 3*time.Second, nil
}
