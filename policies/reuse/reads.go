package reuse

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/portico-io/portico/policies/input"
)

// Reads are the inputs that an evaluation depends on. Its outputs are reused as
// long as these are the same.
type Reads struct {
	// all means that the policy reads the input as a whole, or a field whose name is
	// computed by the evaluation.
	all bool
	// fields are the top-level fields of the input that the policy reads.
	fields []string
	// clock means that the policy reads the time.
	clock bool
}

// ReadsOf collects the inputs of compiled modules: of a policy, and of the libraries
// it imports.
func ReadsOf(compiled map[string]*ast.Module) Reads {
	var reads Reads
	var visitor *ast.GenericVisitor
	visitor = ast.NewGenericVisitor(func(node any) bool {
		switch node := node.(type) {
		case ast.Var:
			reads.all = reads.all || node.Equal(ast.InputRootDocument.Value)
		case ast.Ref:
			reads.add(node)
			for _, part := range node[1:] { // a reference to a field does not read the whole input
				visitor.Walk(part)
			}
			return true
		}
		return false
	})
	for _, module := range compiled {
		visitor.Walk(module)
	}
	slices.Sort(reads.fields)
	return reads
}

func (r *Reads) add(ref ast.Ref) {
	r.clock = r.clock || readsClock(ref)
	if len(ref) == 0 || !ref[0].Equal(ast.InputRootDocument) {
		return
	}
	if len(ref) == 1 {
		r.all = true
		return
	}
	name, constant := ref[1].Value.(ast.String)
	if !constant {
		r.all = true
	} else if !slices.Contains(r.fields, string(name)) {
		r.fields = append(r.fields, string(name))
	}
}

// readsClock reports whether a reference is to a built-in function whose result depends
// on the time. Capabilities allow no other function with a result that changes.
func readsClock(ref ast.Ref) bool {
	name := ref.String()
	return name == ast.NowNanos.Name || strings.HasPrefix(name, "crypto.x509.parse_and_verify")
}

// Key names an evaluation: the policy, the fields of the input that it reads, and the
// time if it reads that.
func (r Reads) Key(policy Digest, fields []input.Digest, now time.Time) Digest {
	hash := sha256.New()
	hash.Write(policy[:])
	for _, field := range fields {
		if r.all || slices.Contains(r.fields, field.Name) {
			_, _ = fmt.Fprintf(hash, "%q", field.Name)
			hash.Write(field.Sum[:])
		}
	}
	if r.clock {
		_ = binary.Write(hash, binary.BigEndian, now.UnixNano())
	}
	return Digest(hash.Sum(nil))
}
