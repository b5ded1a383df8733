// Package kinds says what each native kind means to Portico: how it is held
// still on the hub, what of it is sent to a target, and how the target's status
// reads on the hub. One file per kind. Everything here is a pure function of
// unstructured objects, so that a field this binary does not know survives.
package kinds
