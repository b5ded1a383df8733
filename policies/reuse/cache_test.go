package reuse

import (
	"crypto/sha256"
	"fmt"
	"runtime"
	"strings"
	"testing"
)

type text string

func (t text) Digest() Digest { return sha256.Sum256([]byte(t)) }
func (t text) Size() int      { return len(t) }

// TestCacheIsBounded fills the cache several times.
func TestCacheIsBounded(t *testing.T) {
	key := func(i int) Digest { return Digest{byte(i), byte(i >> 8)} }
	same := text(strings.Repeat("x", 1000))
	c := NewCache[text](100 * EntrySize)
	for i := range 80 {
		c.Put(key(i), same)
	}
	if c.entries.Len() != 80 || len(c.byValue) != 1 {
		t.Errorf("%d entries with %d values; equal outputs are one value", c.entries.Len(), len(c.byValue))
	}
	for i := range 1000 {
		c.Put(key(i), text(fmt.Sprint(i)))
		if c.bytes > c.max {
			t.Fatalf("%d bytes of at most %d", c.bytes, c.max)
		}
	}
	if _, ok := c.Get(key(999)); !ok {
		t.Error("the newest entry is lost")
	}
	if _, ok := c.Get(key(100)); ok {
		t.Error("an old entry is still there")
	}
	for c.entries.Len() > 0 {
		c.entries.RemoveOldest()
	}
	if c.bytes != 0 || len(c.byValue) != 0 {
		t.Errorf("an empty cache holds %d bytes and %d values", c.bytes, len(c.byValue))
	}
}

// TestEntrySize compares the estimated size of an entry with its memory.
func TestEntrySize(t *testing.T) {
	const entries = 50_000
	heap := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := heap()
	c := NewCache[text](MaxBytes)
	for i := range entries {
		c.Put(Digest{byte(i), byte(i >> 8), byte(i >> 16)}, text(""))
	}
	after := heap()
	per := float64(after-before) / entries
	if per > EntrySize {
		t.Errorf("an entry takes %.0f bytes, more than the estimate of %d", per, EntrySize)
	}
	t.Logf("%.0f bytes for each entry", per)
	runtime.KeepAlive(c)
}
