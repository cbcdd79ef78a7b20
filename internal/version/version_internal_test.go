package version

import (
	"runtime/debug"
	"testing"

	"github.com/stretchr/testify/assert"
)

// The version is that of this module, also in a program that uses it.
func TestTheVersionOfTheModule(t *testing.T) {
	t.Parallel()
	own := debug.Module{Path: module, Version: "v1.2.3"}
	for want, info := range map[string]*debug.BuildInfo{
		"v1.2.3":    {Main: own},
		"v1.2.4":    {Main: debug.Module{Path: "shop.example/shop", Version: "v9.0.0"}, Deps: []*debug.Module{{Path: "other.example/other", Version: "v8.0.0"}, {Path: module, Version: "v1.2.4"}}},
		"v1.2.5":    {Deps: []*debug.Module{{Path: module, Version: "v1.2.3", Replace: &debug.Module{Path: "fork.example/gateway", Version: "v1.2.5"}}}},
		"(devel)":   {Deps: []*debug.Module{{Path: module, Version: "v1.2.3", Replace: &debug.Module{Path: "../gateway"}}}},
		"(unknown)": {Main: debug.Module{Path: "shop.example/shop", Version: "v9.0.0"}},
	} {
		assert.Equal(t, want, moduleIn(info))
	}
	assert.Equal(t, "(devel)", moduleIn(&debug.BuildInfo{Main: debug.Module{Path: module}}))
}
