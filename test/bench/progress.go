package main

import (
	"fmt"
	"time"
)

// say tells what is going on, one line at a time.
func say(format string, args ...any) {
	fmt.Printf("  "+format+"\n", args...)
}

// step does one thing, and tells of it if it takes more than two seconds.
// progress, if there is any, says how far it is.
func step(what string, progress func() string, do func() error) error {
	started := time.Now()
	done := make(chan error, 1)
	go func() { done <- do() }()

	notice := time.NewTimer(2 * time.Second)
	defer notice.Stop()
	for told := false; ; told = true {
		select {
		case err := <-done:
			if told && err == nil {
				say("%s: done in %s", what, time.Since(started).Round(100*time.Millisecond))
			}
			return err
		case <-notice.C:
			far := ""
			if progress != nil {
				far = ", " + progress()
			}
			say("%s … %s%s", what, time.Since(started).Round(time.Second), far)
			notice.Reset(10 * time.Second)
		}
	}
}
