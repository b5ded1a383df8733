package main

import (
	"fmt"
	"time"
)

// step calls do, and prints a line if it takes more than two seconds.
func step(what string, do func() error) error {
	started := time.Now()
	done := make(chan error, 1)
	go func() { done <- do() }()

	notice := time.NewTimer(2 * time.Second)
	defer notice.Stop()
	reported := false
	for {
		select {
		case err := <-done:
			if reported && err == nil {
				fmt.Printf("  %s: done in %s\n", what, time.Since(started).Round(time.Second))
			}
			return err
		case <-notice.C:
			fmt.Printf("  %s … %s\n", what, time.Since(started).Round(time.Second))
			reported = true
			notice.Reset(10 * time.Second)
		}
	}
}
