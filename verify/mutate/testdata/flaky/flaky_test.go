package flaky

import (
	"os"
	"path/filepath"
	"testing"
)

// mutated reports whether a mutant is active and whether the test was run with it
// before.
func mutated(t *testing.T) (on, again bool) {
	Half(2)
	mutant := os.Getenv("MUTANT")
	if mutant == "" {
		t.Skip("only mutate runs these tests")
	}
	again = os.Mkdir(filepath.Join(os.TempDir(), t.Name()+mutant), 0o700) != nil
	return mutant != "-1" && mutant != "0", again
}

func TestThatFailsOnce(t *testing.T) {
	if on, again := mutated(t); on && !again {
		t.Fail()
	}
}

func TestThatHangsOnce(t *testing.T) {
	if on, again := mutated(t); on && !again {
		select {}
	}
}

func TestThatFailsOnABusyMachine(t *testing.T) {
	if mutated(t); os.Getenv("MUTANT") != "-1" { // not in the run that determines what the test reaches
		t.Fail()
	}
}
