package gateway_test

import (
	"os"
	"testing"

	"github.com/gateway-go/gateway/internal/testmain"
)

func TestMain(m *testing.M) {
	testmain.Allocating()
	os.Exit(m.Run())
}
