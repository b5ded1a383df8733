package flaky

import (
	"sync"
	"time"
)

// Trouble has several proxies for one server. After Begin, a third of them hang, a
// third refuse, and the others change between the modes.
type Trouble struct {
	Proxies []*Proxy

	stop  chan struct{}
	flaps sync.WaitGroup
}

// Troubles returns three kinds of proxies, with a number of each. All of them forward
// at first.
func Troubles(server string, each int) (*Trouble, error) {
	t := &Trouble{}
	for range 3 * each {
		p, err := Before(server)
		if err != nil {
			t.Close()
			return nil, err
		}
		t.Proxies = append(t.Proxies, p)
	}
	return t, nil
}

// Begin starts the trouble.
func (t *Trouble) Begin() {
	each := len(t.Proxies) / 3
	for i := range each {
		t.Proxies[i].Turn(Hanging)
		t.Proxies[each+i].Turn(Refusing)
	}
	stop := make(chan struct{})
	t.stop = stop
	t.flaps.Go(func() {
		ticks := time.NewTicker(300 * time.Millisecond)
		defer ticks.Stop()
		for turn := 0; ; turn++ {
			select {
			case <-stop:
				return
			case <-ticks.C:
			}
			for _, p := range t.Proxies[2*each:] {
				p.Turn([]Mode{Refusing, Through, Hanging, Through}[turn%4])
			}
		}
	})
}

// End makes all proxies forward again.
func (t *Trouble) End() {
	if t.stop != nil {
		close(t.stop)
		t.stop = nil
	}
	t.flaps.Wait()
	for _, p := range t.Proxies {
		p.Turn(Through)
	}
}

// Close closes all proxies.
func (t *Trouble) Close() {
	t.End()
	for _, p := range t.Proxies {
		p.Close()
	}
}
