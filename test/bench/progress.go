package main

import (
	"fmt"
	"time"
)

// printProgress prints one line about the progress.
func printProgress(format string, args ...any) {
	fmt.Printf("  "+format+"\n", args...)
}

// step calls do, and prints a line if it takes more than two seconds. progress returns
// the progress, and may be nil.
func step(what string, progress func() string, do func() error) error {
	started := time.Now()
	done := make(chan error, 1)
	go func() { done <- do() }()

	notice := time.NewTimer(2 * time.Second)
	defer notice.Stop()
	for reported := false; ; reported = true {
		select {
		case err := <-done:
			if reported && err == nil {
				printProgress("%s: done in %s", what, time.Since(started).Round(100*time.Millisecond))
			}
			return err
		case <-notice.C:
			far := ""
			if progress != nil {
				far = ", " + progress()
			}
			printProgress("%s … %s%s", what, time.Since(started).Round(time.Second), far)
			notice.Reset(10 * time.Second)
		}
	}
}
