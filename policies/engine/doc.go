// Package engine evaluates policies. It holds those that are in force in an immutable
// set behind a pointer: every caller sees one whole set, and never waits for a policy
// to be compiled.
//
// A policy is checked whole before it decides anything: parsed, compiled
// strictly with the schema of its input, its outputs' types compared with the
// contract, and its tests run. A policy that fails keeps its last good form.
//
// Policies only tighten, and their outputs are joined by union, by "and", and by weighted
// sum. So they have no order, and cannot conflict.
package engine
