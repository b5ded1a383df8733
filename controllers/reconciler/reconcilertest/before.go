package reconcilertest

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// Request is one request to a fake hub.
type Request struct {
	// Verb is get, list, create, update, patch or delete.
	Verb string
	// Subresource is "status", for example. It is empty for the object itself.
	Subresource string
	// Key is the key of the object. A list only has a namespace.
	Key client.ObjectKey
	// Object is the object or the list, as the client was given it.
	Object runtime.Object
	// Index is the field of a list by an index.
	Index string
}

// Type returns the name of the Go type of the object, without its package:
// "KubernetesTarget", "DeploymentList", "PartialObjectMetadata".
func (r Request) Type() string {
	name := fmt.Sprintf("%T", r.Object)
	return name[strings.LastIndex(name, ".")+1:]
}

// Kind returns the kind that the object states, and its type if it states none.
func (r Request) Kind() string {
	if kind := r.Object.GetObjectKind().GroupVersionKind().Kind; kind != "" {
		return kind
	}
	return r.Type()
}

// String returns the verb, the subresource and the kind: "get KubernetesTarget", "patch
// status KubernetesTarget", "list DeploymentList".
func (r Request) String() string {
	words := []string{r.Verb, r.Subresource, r.Kind()}
	return strings.Join(slices.DeleteFunc(words, func(word string) bool { return word == "" }), " ")
}

// FailOn returns a check for Before: a request that is written like this fails.
func FailOn(request string, err error) func(Request) error {
	return func(r Request) error {
		if r.String() == request {
			return err
		}
		return nil
	}
}

// Before returns the functions of a fake client that call check before each request. A
// request for which check returns an error is not sent. A nil check lets all pass.
func Before(check func(Request) error) interceptor.Funcs {
	// send sends the request unless check returns an error.
	send := func(request Request, call func() error) error {
		if check != nil {
			if err := check(request); err != nil {
				return err
			}
		}
		return call()
	}
	of := func(verb, subresource string, o client.Object) Request {
		return Request{Verb: verb, Subresource: subresource, Key: client.ObjectKeyFromObject(o), Object: o}
	}
	return interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			return send(Request{Verb: "get", Key: key, Object: o}, func() error { return c.Get(ctx, key, o, opts...) })
		},
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			var options client.ListOptions
			options.ApplyOptions(opts)
			request := Request{Verb: "list", Key: client.ObjectKey{Namespace: options.Namespace}, Object: list}
			if options.FieldSelector != nil && !options.FieldSelector.Empty() {
				request.Index = options.FieldSelector.Requirements()[0].Field
			}
			return send(request, func() error { return c.List(ctx, list, opts...) })
		},
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			return send(of("create", "", o), func() error { return c.Create(ctx, o, opts...) })
		},
		Update: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.UpdateOption) error {
			return send(of("update", "", o), func() error { return c.Update(ctx, o, opts...) })
		},
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			return send(of("patch", "", o), func() error { return c.Patch(ctx, o, p, opts...) })
		},
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
			return send(of("delete", "", o), func() error { return c.Delete(ctx, o, opts...) })
		},
		SubResourceUpdate: func(ctx context.Context, c client.Client, sub string, o client.Object, opts ...client.SubResourceUpdateOption) error {
			return send(of("update", sub, o), func() error { return c.SubResource(sub).Update(ctx, o, opts...) })
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
			return send(of("patch", sub, o), func() error { return c.SubResource(sub).Patch(ctx, o, p, opts...) })
		},
	}
}
