// Package engine asks policies. It holds those that are in force in an
// immutable set behind a pointer: whoever asks sees one whole set, and nobody
// waits for a policy to be compiled.
//
// A policy is checked whole before it decides anything: parsed, compiled
// strictly with the schema of its input, its outputs' types compared with the
// contract, and its tests run. One that fails keeps its last good form.
//
// Policies only tighten, and their answers are sets, joined by union, and, and
// weighted sum. So they have no order, and cannot conflict.
package engine
