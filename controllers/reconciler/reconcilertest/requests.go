// Package reconcilertest records the requests of a reconciler to a fake hub, and fails
// some of them.
package reconcilertest

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// Requests are the requests to a fake hub: lists by an index, and writes. A request is
// written as "list <index>", "create <name>", "patch <name>", "patch status of <name>",
// or "delete <name>".
type Requests struct {
	// Sent are the requests, in order.
	Sent []string
	// Fail holds the errors of requests that fail.
	Fail map[string]error
}

func (r *Requests) add(request string) error {
	r.Sent = append(r.Sent, request)
	return r.Fail[request]
}

// Funcs returns the functions that record the requests of a fake client.
func (r *Requests) Funcs() interceptor.Funcs {
	return interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			var options client.ListOptions
			options.ApplyOptions(opts)
			if options.FieldSelector != nil && !options.FieldSelector.Empty() {
				if err := r.add("list " + options.FieldSelector.Requirements()[0].Field); err != nil {
					return err
				}
			}
			return c.List(ctx, list, opts...)
		},
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			if err := r.add("create " + o.GetName()); err != nil {
				return err
			}
			return c.Create(ctx, o, opts...)
		},
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			if err := r.add("patch " + o.GetName()); err != nil {
				return err
			}
			return c.Patch(ctx, o, p, opts...)
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
			if err := r.add("patch " + sub + " of " + o.GetName()); err != nil {
				return err
			}
			return c.SubResource(sub).Patch(ctx, o, p, opts...)
		},
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
			if err := r.add("delete " + o.GetName()); err != nil {
				return err
			}
			return c.Delete(ctx, o, opts...)
		},
	}
}
