package engine

import (
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"

	"github.com/portico-io/portico/policies/reuse"
)

// clip returns a copy whose lists do not share their spare capacity.
func (o *outputs) clip() *outputs {
	out := *o
	out.deny, out.warn, out.exclude = slices.Clip(out.deny), slices.Clip(out.warn), slices.Clip(out.exclude)
	out.require = slices.Clip(out.require)
	return &out
}

// Digest implements reuse.Value, for outputs in the order that Rego gives to the elements of a set.
func (o *outputs) Digest() reuse.Digest {
	hash := sha256.New()
	for _, findings := range [][]Finding{o.deny, o.warn, o.exclude} {
		_, _ = fmt.Fprintf(hash, "%d\n", len(findings))
		for _, f := range findings {
			_, _ = fmt.Fprintf(hash, "%q %q %q %q %q\n", f.Policy, f.Code, f.Message, f.Field, f.Target)
		}
	}
	for _, r := range o.require {
		_, _ = fmt.Fprintf(hash, "%q %q\n", r.Policy, r.String())
	}
	for _, target := range slices.Sorted(maps.Keys(o.score)) {
		_, _ = fmt.Fprintf(hash, "%q=%v\n", target, o.score[target])
	}
	return reuse.Digest(hash.Sum(nil))
}

// Size implements reuse.Value. It estimates the memory of the outputs in bytes.
func (o *outputs) Size() int {
	const finding, requirement, score = 80, 120, 64
	size := reuse.EntrySize + len(o.require)*requirement
	for _, findings := range [][]Finding{o.deny, o.warn, o.exclude} {
		for _, f := range findings {
			size += finding + len(f.Policy) + len(f.Code) + len(f.Message) + len(f.Field) + len(f.Target)
		}
	}
	for _, r := range o.require {
		size += len(r.Policy) + len(r.String())
	}
	for target := range o.score {
		size += score + len(target)
	}
	return size
}

// identify sets the digest that names all content that a policy is compiled from.
func (out *compiled) identify(libraries map[string]*compiled) {
	hash := sha256.New()
	_, _ = fmt.Fprintf(hash, "%q %q %q\n", out.spec.Type, out.name, out.revision)
	for _, name := range out.libraries {
		_, _ = fmt.Fprintf(hash, "%q %x\n", name, libraries[name].identity)
	}
	out.identity = reuse.Digest(hash.Sum(nil))
}

// cacheKey names an evaluation. It is false when the input has no digest.
func (out *compiled) cacheKey(in *document) (reuse.Digest, bool) {
	fields, err := in.digests()
	if err != nil {
		return reuse.Digest{}, false
	}
	return out.reads.Key(out.identity, fields, in.now), true
}
