package webhook_test

import (
	"runtime"
	"syscall"
	"time"
)

// processorTime returns the processor time that one call of f takes on its own
// thread: other work on the machine does not count.
func processorTime(f func()) time.Duration {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	const thisThread = 1 // RUSAGE_THREAD
	used := func() time.Duration {
		var u syscall.Rusage
		_ = syscall.Getrusage(thisThread, &u) // fails for wrong arguments only
		return time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
	before := used()
	f()
	return used() - before
}
