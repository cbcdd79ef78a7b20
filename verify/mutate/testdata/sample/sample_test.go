package sample

import (
	"os"
	"testing"
)

func TestMax(t *testing.T) {
	if Max(1, 2) != 2 || Max(2, 1) != 2 || Names[0] != "first" {
		t.Fail()
	}
}

func TestThatFailsInsideMutate(t *testing.T) {
	if os.Getenv("MUTANT") != "" {
		t.Fail()
	}
}
