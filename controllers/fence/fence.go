// Package fence decides which of two processes with the identity of one hub writes to a
// cluster. The holder of a Lease on the cluster writes. A cloned hub is not the holder,
// and neither is a former leader that was suspended.
//
// It does not use client-go's leader election, which never takes over a Lease before it
// expires, and which ends when it loses the Lease. A fence continues, and takes the
// Lease again when the other process has stopped.
package fence

import "time"

// The times of a Lease. Validity is less than Duration, so that a holder stops
// writing before another process may begin. It is more than RenewInterval, so that
// one renewal may fail.
const (
	Duration      = 25 * time.Second
	Validity      = 20 * time.Second
	RenewInterval = 10 * time.Second
	// ReadInterval is the interval of reads of another holder's Lease. A process that
	// finds the Lease expired takes it over within Duration and ReadInterval.
	ReadInterval = 5 * time.Second
	// RetryInterval is the delay before a failed renewal is tried again.
	RetryInterval = 2 * time.Second
)

// State is the state of the fence of one cluster.
type State string

// The states. Writes are allowed in Held and Unfenced.
const (
	// Pending is the state before the first answer.
	Pending State = "Pending"
	// Held: this process holds the Lease.
	Held State = "Held"
	// Lapsed: this process held the Lease, and could not renew it in time.
	Lapsed State = "Lapsed"
	// Conflict: another process of the same identity holds the Lease.
	Conflict State = "Conflict"
	// Unfenced: no connection has the right to the Lease.
	Unfenced State = "Unfenced"
)

// Action is the next action on the Lease.
type Action string

// The actions.
const (
	Create   Action = "Create"
	Renew    Action = "Renew"
	TakeOver Action = "Take"
	Wait     Action = "Wait"
)

// Lease is a Lease as it was read.
type Lease struct {
	Holder string
	// Version changes with every write.
	Version string
	// Duration that the holder wrote.
	Duration time.Duration
}

// Fence is the view that one process has of one cluster's Lease. All times are of
// this process's clock; the clocks of other processes are not compared.
type Fence struct {
	// Identity identifies this process.
	Identity string
	// Predecessor is the process that led this hub before. The Lease is taken over
	// from it at once, and only once.
	Predecessor string

	lease      *Lease
	observedAt time.Time // the time at which this version of the Lease was first read
	renewedAt  time.Time // the start of the last successful renewal
	observed   bool
	denied     bool
}

// Observe records a read Lease; nil if there is none.
func (f *Fence) Observe(lease *Lease, now time.Time) {
	f.observed, f.denied = true, false
	if lease == nil || f.lease == nil || f.lease.Version != lease.Version {
		f.observedAt = now
	}
	f.lease = lease
	if lease == nil || lease.Holder != f.Identity {
		f.renewedAt = time.Time{}
	}
}

// Next returns the next action on the last read Lease.
func (f *Fence) Next(now time.Time) Action {
	switch {
	case f.lease == nil:
		return Create
	case f.lease.Holder == f.Identity:
		return Renew
	case f.lease.Holder == "", f.lease.Holder == f.Predecessor, elapsed(f.observedAt, now) >= f.leaseDuration():
		return TakeOver
	default:
		return Wait
	}
}

// leaseDuration returns the duration of the holder's Lease. It is bounded, because
// any user of the target may have written it.
func (f *Fence) leaseDuration() time.Duration {
	return min(max(f.lease.Duration, time.Second), Duration)
}

// RecordWrite records that a request, which began at startedAt, created, renewed or
// took over the Lease.
func (f *Fence) RecordWrite(version string, startedAt time.Time) {
	f.observed, f.denied = true, false
	f.lease = &Lease{Holder: f.Identity, Version: version, Duration: Duration}
	f.observedAt, f.renewedAt = startedAt, startedAt
	f.Predecessor = "" // a process that takes the Lease over later has not led this hub before
}

// SetDenied records that no connection has the right to the Lease.
func (f *Fence) SetDenied() {
	f.observed, f.denied = true, true
	f.lease, f.renewedAt = nil, time.Time{}
}

// State returns the state at a time.
func (f *Fence) State(now time.Time) State {
	switch {
	case f.denied:
		return Unfenced
	case f.lease != nil && f.lease.Holder == f.Identity && !f.renewedAt.IsZero():
		if elapsed(f.renewedAt, now) < Validity {
			return Held
		}
		return Lapsed
	case f.lease != nil && f.Next(now) == Wait:
		return Conflict
	case !f.observed:
		return Pending
	default:
		return Lapsed // the Lease is free
	}
}

// Holder returns the holder of the Lease; "" if none is known.
func (f *Fence) Holder() string {
	if f.lease == nil {
		return ""
	}
	return f.lease.Holder
}

// elapsed returns the time between two times, by the clock that advanced further: the
// monotonic clock does not advance while a machine is suspended.
func elapsed(from, to time.Time) time.Duration {
	return max(to.Sub(from), to.Round(0).Sub(from.Round(0)))
}
