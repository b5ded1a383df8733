// Package engine evaluates policies. It keeps the policies in force in an immutable set
// behind a pointer: every caller sees one complete set, and never waits for a
// compilation.
//
// A policy is checked before it is used: it is parsed, and compiled strictly with the
// schema of its input; the types of its outputs are compared with the contract, and its
// tests are run. If a check fails, the last form that works remains in use.
//
// Policies can only deny, and their outputs are combined by union, by "and", and by
// weighted sum. So they have no order, and no conflicts.
package engine
