//go:build !linux

package engine

import "time"

var epoch = time.Now()

func currentThread() int64 { return 1 }

// processorTime is the clock on the wall where threads' time cannot be read.
func processorTime(int64) time.Duration { return time.Since(epoch) }
