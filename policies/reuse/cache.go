// Package reuse decides whether an earlier answer of a policy is valid for a new
// question. It finds the inputs that a policy reads, and keeps answers by the digest of
// these inputs.
package reuse

import (
	"crypto/sha256"
	"sync"

	"k8s.io/utils/lru"
)

// MaxBytes bounds the memory of the cache of an engine, as EntrySize and Value.Size
// estimate it. It is enough for 300,000 answers without findings: 30 policies about
// 10,000 objects.
const MaxBytes = 64 << 20

// EntrySize is the memory of one entry of the cache without its value.
const EntrySize = 200

// Digest is a SHA-256 sum. Digests stand for contents that may come from a tenant, so
// equal digests of different contents must not be possible to construct.
type Digest [sha256.Size]byte

// Value is an answer.
type Value interface {
	// Digest of the content.
	Digest() Digest
	// Size estimates the memory in bytes.
	Size() int
}

// Cache keeps the outputs of evaluations by the digest of everything that the
// evaluation read. The least recently used entries are dropped first. Equal outputs
// are stored once: most objects of an application get the same answer.
//
// The cache is lost at a restart. Then the policies are evaluated anew.
type Cache[V Value] struct {
	mu      sync.Mutex
	entries *lru.Cache // *shared by digest of the evaluation
	byValue map[Digest]*shared[V]
	bytes   int
	max     int
}

type shared[V Value] struct {
	value   V
	digest  Digest
	size    int
	entries int // that share the value
}

// NewCache returns an empty cache.
func NewCache[V Value](maxBytes int) *Cache[V] {
	c := &Cache[V]{byValue: map[Digest]*shared[V]{}, max: maxBytes}
	c.entries = lru.NewWithEvictionFunc(0, func(_ lru.Key, entry any) { c.release(entry) })
	return c
}

// Get returns the value of a key. The caller must not change it.
func (c *Cache[V]) Get(key Digest) (value V, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	entry, _ := c.entries.Get(key)
	if s, known := entry.(*shared[V]); known {
		return s.value, true
	}
	return value, false
}

// Put stores a value. The value must not be changed afterwards.
func (c *Cache[V]) Put(key Digest, value V) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, known := c.entries.Get(key); known {
		return // two reconciles evaluated the same question
	}
	digest := value.Digest()
	s := c.byValue[digest]
	if s == nil {
		s = &shared[V]{value: value, digest: digest, size: value.Size()}
		c.byValue[digest] = s
		c.bytes += s.size
	}
	s.entries++
	c.bytes += EntrySize
	c.entries.Add(key, s)
	for c.bytes > c.max && c.entries.Len() > 0 {
		c.entries.RemoveOldest()
	}
}

// release is called for each entry that is dropped.
func (c *Cache[V]) release(entry any) {
	s, ok := entry.(*shared[V])
	if !ok {
		return
	}
	s.entries--
	c.bytes -= EntrySize
	if s.entries == 0 {
		delete(c.byValue, s.digest)
		c.bytes -= s.size
	}
}
