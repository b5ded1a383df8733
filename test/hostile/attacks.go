package hostile

import (
	"fmt"
	"net/http"
	"strings"
	"time"
)

// Attack replaces the responses of endpoints. An endpoint without a replacement is
// honest.
type Attack struct {
	Version, Discovery, List, Watch, Object func(*Answer)
}

// of returns the hostile and the honest response for a request.
func (t Attack) of(r *http.Request) (hostile, honest func(*Answer)) {
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	query := r.URL.Query()
	depth := 2 // api/v1
	if parts[0] == "apis" {
		depth = 3 // apis/apps/v1
	}
	switch {
	case parts[0] == "version":
		return t.Version, honestVersion
	case parts[0] != "api" && parts[0] != "apis":
		return t.Object, honestObject
	case len(parts) <= depth:
		return t.Discovery, honestDiscovery
	case query.Get("watch") != "":
		return t.Watch, honestWatch
	case r.Method == http.MethodGet && (len(parts) == depth+1 || len(parts) == depth+3 && parts[depth] == "namespaces"):
		return t.List, honestList
	}
	return t.Object, honestObject
}

// million is more than a hub needs.
const million = 1_000_000

// Attacks returns all attacks by name.
func Attacks() map[string]Attack {
	all := func(answer func(*Answer)) Attack { return Attack{answer, answer, answer, answer, answer} }
	return map[string]Attack{
		// The first two replace all responses, so that a target never answers.
		"gigabytes of everything": all(Gigabytes),
		"endless redirects":       all(Redirect),

		"gigabytes of version":   {Version: Gigabytes},
		"gigabytes of discovery": {Discovery: Gigabytes},
		"gigabytes of objects":   {List: Gigabytes, Watch: gone},
		"gigabytes of an event":  {Watch: HugeEvent},
		"a million groups":       {Discovery: Groups},
		"a million objects":      {List: Million, Watch: gone},
		"a million in one page":  {List: Crowd, Watch: gone},
		"a million events":       {Watch: InitialEvents},
		"a storm of events":      {Watch: Storm},
		"growing objects":        {Watch: Growth},
		"a list of nothing":      {List: Nothings, Watch: gone},
		"slow drips":             {List: Drip, Watch: gone},
		"slow drips of version":  {Version: Drip},
		"broken UTF-8":           {Version: Broken, List: BrokenError, Watch: BrokenError, Object: BrokenError},
	}
}

// Gigabytes responds with one string that exceeds any memory.
func Gigabytes(a *Answer) {
	a.Start(http.StatusOK)
	a.Write(`{"kind":"ConfigMapList","apiVersion":"v1","items":[],"gitVersion":"`)
	for chunk := strings.Repeat("x", 1<<20); a.Write(chunk); {
	}
}

// HugeEvent sends a watch event that does not end.
func HugeEvent(a *Answer) {
	if !a.begin(0, 0) {
		return
	}
	a.Write(`{"type":"ADDED","object":{"apiVersion":"v1","kind":"ConfigMap","data":{"x":"`)
	for chunk := strings.Repeat("x", 1<<20); a.Write(chunk); {
	}
}

// Redirect redirects the client without end.
func Redirect(a *Answer) {
	a.w.Header().Set("Location", a.Request.URL.Path+"/again")
	a.Start(http.StatusFound)
}

// Groups responds to discovery with a million groups, each with a hundred versions.
func Groups(a *Answer) {
	switch strings.Trim(a.Request.URL.Path, "/") {
	case "apis":
	default:
		honestDiscovery(a)
		return
	}
	versions := make([]string, 100)
	for i := range versions {
		versions[i] = fmt.Sprintf(`{"groupVersion":"g/v%d","version":"v%d"}`, i, i)
	}
	all := strings.Join(versions, ",")
	a.Start(http.StatusOK)
	a.Write(`{"kind":"APIGroupList","apiVersion":"v1","groups":[{"name":"apps","versions":[{"groupVersion":"apps/v1","version":"v1"}]}`)
	for i := range million {
		if !a.Write(fmt.Sprintf(`,{"name":"g%d.example.org","versions":[%s]}`, i, all)) {
			return
		}
	}
	a.Write("]}")
}

// Million lists a million objects, in pages of the requested size.
func Million(a *Answer) { page(a, million, 100, true) }

// Crowd lists a million objects in one page, for any requested size.
func Crowd(a *Answer) { page(a, million, 100, false) }

// Nothings lists as many empty objects as fit: they are small in transfer, and large in
// memory.
func Nothings(a *Answer) {
	a.Start(http.StatusOK)
	a.Write(`{"kind":"ConfigMapList","apiVersion":"v1","metadata":{"resourceVersion":"1"},"items":[{}`)
	for chunk := strings.Repeat(",{}", 1<<18); a.Write(chunk); {
	}
}

// InitialEvents sends a million initial events of a watch.
func InitialEvents(a *Answer) {
	if a.begin(million, 100) {
		a.Flush()
		a.Wait(time.Hour)
	}
}

// Storm changes ten objects without end.
func Storm(a *Answer) {
	if !a.begin(10, 100) {
		return
	}
	for i := 0; a.event("MODIFIED", one(i%10, i+2, 100)); i++ {
	}
}

// Growth sends new versions of its objects, each larger than the previous one.
func Growth(a *Answer) {
	const objects = 2000
	if !a.begin(objects, 100) {
		return
	}
	for i := 0; a.event("MODIFIED", one(i%objects, i+2, 1<<20)) && a.Wait(time.Millisecond); i++ {
	}
}

// Drip responds one byte at a time, without end.
func Drip(a *Answer) {
	a.Start(http.StatusOK)
	for a.Write(" ") && a.Wait(20*time.Millisecond) {
		a.Flush()
	}
}

// broken is long, and no UTF-8.
var broken = strings.Repeat("\xff\xfe\x80", 100_000)

// Broken responds with a version that is no UTF-8.
func Broken(a *Answer) {
	a.Start(http.StatusOK)
	a.Write(`{"major":"1","minor":"36","gitVersion":"v1.36.3` + broken + `"}`)
}

// BrokenError responds with an error that is no UTF-8, in the body and in a warning.
func BrokenError(a *Answer) {
	a.w.Header().Set("Warning", `299 - "`+strings.Repeat("w", 100_000)+`"`)
	a.Start(http.StatusForbidden)
	a.Write(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","message":"` + broken + `","code":403}`)
}

// gone refuses a watch with initial events, so that the client lists.
func gone(a *Answer) {
	if a.Request.URL.Query().Get("sendInitialEvents") == "true" {
		a.JSON(http.StatusUnprocessableEntity, object{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Invalid",
			"message": "sendInitialEvents: Forbidden", "code": http.StatusUnprocessableEntity})
		return
	}
	honestWatch(a)
}

// OldServer does not support initial events of a watch, like servers before Kubernetes
// 1.32. Otherwise it is honest.
func OldServer() Attack { return Attack{Watch: gone} }
