package webhook_test

import (
	"runtime"
	"syscall"
	"time"
)

// processorTime returns the processor time of one call of f. It counts only
// the calling thread, not other work on the machine.
func processorTime(f func()) time.Duration {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	const thisThread = 1 // RUSAGE_THREAD
	used := func() time.Duration {
		var u syscall.Rusage
		_ = syscall.Getrusage(thisThread, &u) // fails only for invalid arguments
		return time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
	before := used()
	f()
	return used() - before
}
