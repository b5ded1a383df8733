package reconciler

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/portico-io/portico/controllers/events"
)

// Writer writes objects of the hub for one reconciler. It compares before it writes,
// wraps errors with the object, and writes every change to the log. An object that was
// deleted meanwhile is no error.
type Writer struct {
	Client client.Client
	// Owner is the field manager of the writes.
	Owner client.FieldOwner
}

// Option changes how a patch is sent.
type Option func(*options)

type options struct {
	unlocked bool
	recorder events.Recorder
	about    runtime.Object
	action   string
}

// Unlocked sends a patch without the resource version. By default a patch fails with a
// conflict if the object changed since it was read: a merge patch replaces lists as a
// whole, and a status that is computed from an old copy may emit an event twice.
func Unlocked() Option { return func(o *options) { o.unlocked = true } }

// Emit emits the events of changed conditions on an object, after the status was
// written.
func Emit(recorder events.Recorder, about runtime.Object, action string) Option {
	return func(o *options) { o.recorder, o.about, o.action = recorder, about, action }
}

// PatchStatus writes the status of an object if it differs from the one before, and
// tells whether it wrote.
func (w Writer) PatchStatus(ctx context.Context, before, after client.Object, opts ...Option) (bool, error) {
	if was, is := statusOf(before), statusOf(after); equality.Semantic.DeepEqual(was, is) {
		return false, nil
	}
	o := newOptions(opts)
	// The response replaces after, and before may be the object in the cache.
	conditions := conditionsOf(after)
	err := w.Client.Status().Patch(ctx, after, o.patch(before, after), w.Owner)
	if err != nil {
		return false, client.IgnoreNotFound(w.wrap("writing the status of", after, err))
	}
	w.log(ctx, "Wrote status", after, "conditions", changedConditions(conditionsOf(before), conditions))
	if o.recorder != nil {
		events.Emit(o.recorder, o.about, o.action, events.OfConditions(conditionsOf(before), conditionsOf(after))...)
	}
	return true, nil
}

// Patch writes an object without its status if it differs from the one before, and
// tells whether it wrote. doing is the reason in the log and in errors, such as
// "placing". The status in memory is kept, because a reconcile writes it at its end.
func (w Writer) Patch(ctx context.Context, before, after client.Object, doing string, opts ...Option) (bool, error) {
	status := statusOf(after)
	setStatus(after, statusOf(before))
	defer setStatus(after, status)
	if equality.Semantic.DeepEqual(before, after) {
		return false, nil
	}
	if err := w.Client.Patch(ctx, after, newOptions(opts).patch(before, after), w.Owner); err != nil {
		return false, client.IgnoreNotFound(w.wrap(doing, after, err))
	}
	w.log(ctx, "Patched object", after, "reason", strings.TrimSuffix(doing, " of"))
	return true, nil
}

// Scale writes the replicas of an object by its subresource scale, if the object did not
// change since it was read. doing is the reason in the log and in errors.
func (w Writer) Scale(ctx context.Context, object client.Object, replicas int64, doing string) error {
	patch := fmt.Appendf(nil, `{"metadata":{"resourceVersion":%q},"spec":{"replicas":%d}}`, object.GetResourceVersion(), replicas)
	scaled, ok := object.DeepCopyObject().(client.Object) // the response is a Scale
	if !ok {
		return nil
	}
	if err := w.Client.SubResource("scale").Patch(ctx, scaled, client.RawPatch(types.MergePatchType, patch), w.Owner); err != nil {
		return client.IgnoreNotFound(w.wrap(doing, object, err))
	}
	w.log(ctx, "Scaled object", object, "replicas", replicas, "reason", strings.TrimSuffix(doing, " in"))
	return nil
}

// Create creates an object. doing is the reason in the log and in errors.
func (w Writer) Create(ctx context.Context, object client.Object, doing string) error {
	if err := w.Client.Create(ctx, object, w.Owner); err != nil {
		return w.wrap(doing, object, err)
	}
	w.log(ctx, "Created object", object, "reason", doing)
	return nil
}

// Delete deletes an object if it did not change since it was read. It does not delete
// an object with the same name and another UID. doing is the reason in the log and in
// errors.
func (w Writer) Delete(ctx context.Context, object client.Object, doing string, opts ...client.DeleteOption) error {
	opts = append([]client.DeleteOption{client.Preconditions{UID: ptr.To(object.GetUID()), ResourceVersion: ptr.To(object.GetResourceVersion())}}, opts...)
	if err := w.Client.Delete(ctx, object, opts...); err != nil {
		return client.IgnoreNotFound(w.wrap(doing, object, err))
	}
	w.log(ctx, "Deleted object", object, "reason", doing)
	return nil
}

// AddFinalizer adds a finalizer to an object, if the object lacks it.
func (w Writer) AddFinalizer(ctx context.Context, object client.Object, finalizer string) error {
	return w.finalize(ctx, object, finalizer, controllerutil.AddFinalizer, "adding the finalizer of")
}

// RemoveFinalizer removes a finalizer from an object, if the object has it.
func (w Writer) RemoveFinalizer(ctx context.Context, object client.Object, finalizer string) error {
	return w.finalize(ctx, object, finalizer, controllerutil.RemoveFinalizer, "removing the finalizer of")
}

func (w Writer) finalize(ctx context.Context, object client.Object, finalizer string, change func(client.Object, string) bool, doing string) error {
	before, ok := object.DeepCopyObject().(client.Object)
	if !ok || !change(object, finalizer) {
		return nil
	}
	_, err := w.Patch(ctx, before, object, doing)
	return err
}

func newOptions(opts []Option) options {
	var out options
	for _, o := range opts {
		o(&out)
	}
	return out
}

// patch is locked to the resource version of after: an earlier write of the same
// reconcile is no conflict.
func (o options) patch(before, after client.Object) client.Patch {
	if o.unlocked {
		return client.MergeFrom(before)
	}
	if before.GetResourceVersion() != after.GetResourceVersion() {
		if current, ok := before.DeepCopyObject().(client.Object); ok {
			current.SetResourceVersion(after.GetResourceVersion())
			before = current
		}
	}
	return client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
}

func (w Writer) wrap(doing string, object client.Object, err error) error {
	return fmt.Errorf("%s %s %s: %w", doing, w.kind(object), client.ObjectKeyFromObject(object), err)
}

func (w Writer) kind(object client.Object) string {
	gvk, err := w.Client.GroupVersionKindFor(object)
	if err != nil {
		return fmt.Sprintf("%T", object)
	}
	return gvk.Kind
}

func (w Writer) log(ctx context.Context, message string, object client.Object, data ...any) {
	if log := ctrl.LoggerFrom(ctx).V(1); log.Enabled() {
		log.Info(message, append([]any{"kind", w.kind(object), "object", klog.KObj(object)}, data...)...)
	}
}

// changedConditions names the conditions that differ, as "Ready=True".
func changedConditions(before, after []metav1.Condition) []string {
	var out []string
	for _, is := range after {
		same := func(was metav1.Condition) bool {
			return was.Type == is.Type && was.Status == is.Status && was.Reason == is.Reason && was.Message == is.Message
		}
		if !slices.ContainsFunc(before, same) {
			out = append(out, is.Type+"="+string(is.Status))
		}
	}
	return out
}

// statusOf returns the status of an object; nil if its type has none.
func statusOf(object client.Object) any {
	if u, ok := object.(*unstructured.Unstructured); ok {
		return u.Object["status"]
	}
	if field := statusField(object); field.IsValid() {
		return field.Interface()
	}
	return nil
}

func setStatus(object client.Object, status any) {
	if u, ok := object.(*unstructured.Unstructured); ok {
		if status == nil {
			delete(u.Object, "status")
		} else {
			u.Object["status"] = status
		}
		return
	}
	if field := statusField(object); field.IsValid() && status != nil {
		field.Set(reflect.ValueOf(status))
	}
}

func statusField(object client.Object) reflect.Value {
	value := reflect.ValueOf(object)
	if value.Kind() != reflect.Pointer || value.Elem().Kind() != reflect.Struct {
		return reflect.Value{}
	}
	return value.Elem().FieldByName("Status")
}

// conditionsOf returns the conditions of an object's status, of the types that
// Portico defines.
func conditionsOf(object client.Object) []metav1.Condition {
	status := statusField(object)
	if !status.IsValid() || status.Kind() != reflect.Struct {
		return nil
	}
	field := status.FieldByName("Conditions")
	if !field.IsValid() {
		return nil
	}
	out, _ := field.Interface().([]metav1.Condition)
	return out
}
