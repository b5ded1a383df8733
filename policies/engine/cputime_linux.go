package engine

import (
	"time"

	"golang.org/x/sys/unix"
)

func currentThreadID() int64 { return int64(unix.Gettid()) }

// threadCPUTime returns the processor time of a thread of this process. The number of
// its clock is computed as pthread_getcpuclockid does.
func threadCPUTime(thread int64) time.Duration {
	const ofThread, scheduled = 4, 2
	var now unix.Timespec
	if err := unix.ClockGettime(int32(^thread<<3|ofThread|scheduled), &now); err != nil { //nolint:gosec // thread numbers have 22 bits
		return 0 // the thread has ended
	}
	return time.Duration(now.Nano())
}
