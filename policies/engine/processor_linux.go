package engine

import (
	"time"

	"golang.org/x/sys/unix"
)

func currentThread() int64 { return int64(unix.Gettid()) }

// processorTime is what a thread of this process has had of the processor. The
// number of its clock is made as pthread_getcpuclockid makes it.
func processorTime(thread int64) time.Duration {
	const ofThread, scheduled = 4, 2
	var now unix.Timespec
	if err := unix.ClockGettime(int32(^thread<<3|ofThread|scheduled), &now); err != nil { //nolint:gosec // threads are numbered with 22 bits
		return 0 // the thread is gone, and has taken nothing more
	}
	return time.Duration(now.Nano())
}
