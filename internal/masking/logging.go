package masking

import (
	"runtime"
	"strings"
	"sync"
)

// Logging reports whether a JSON handler of log/slog is encoding the caller. Such
// a handler encodes a value within a struct, slice or map with MarshalJSON, which
// has to return the real value in any other case.
func Logging() bool {
	var callers [128]uintptr
	return handlers.among(callers[:runtime.Callers(3, callers[:])])
}

// handlers are the calls of a JSON handler of log/slog.
var handlers = calls{known: make(map[uintptr]bool)}

// calls knows which of the program's calls were made by a handler. Their names are looked up
// once, since that takes longer than to encode a value. A program has a limited number of calls.
type calls struct {
	mu    sync.RWMutex
	known map[uintptr]bool
}

func (c *calls) among(callers []uintptr) bool {
	found, all := c.look(callers)
	if found || all {
		return found
	}
	c.learn(callers)
	found, _ = c.look(callers)
	return found
}

// look reports whether one of the callers is a handler, and whether all are known.
func (c *calls) look(callers []uintptr) (found, all bool) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	all = true
	for _, pc := range callers {
		handler, known := c.known[pc]
		found, all = found || handler, all && known
	}
	return found, all
}

func (c *calls) learn(callers []uintptr) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, pc := range callers {
		frame, _ := runtime.CallersFrames([]uintptr{pc}).Next()
		c.known[pc] = strings.HasPrefix(frame.Function, "log/slog.appendJSON")
	}
}
