// Package hostile serves a Kubernetes API that tries to exhaust its clients.
//
// Without an attack the server is a small, honest API server: it has ConfigMaps,
// Secrets and Deployments, and the objects of Fill. An attack replaces the responses of
// some endpoints. Attacks lists all of them.
package hostile

import (
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Server is the API server. Its methods may be called concurrently.
type Server struct {
	http     *httptest.Server
	requests atomic.Int64
	sent     atomic.Int64

	mu     sync.Mutex
	attack Attack
	count  int
	size   int
	// turned is closed when the attack changes, which ends all responses.
	turned chan struct{}
}

// Start starts a server without an attack, on loopback.
func Start() *Server {
	s := &Server{turned: make(chan struct{}), size: 100}
	s.http = httptest.NewUnstartedServer(http.HandlerFunc(s.serve))
	s.http.EnableHTTP2 = true
	s.http.Config.ErrorLog = log.New(io.Discard, "", 0) // clients close connections, as they should
	s.http.StartTLS()
	return s
}

// Close ends the server and all connections.
func (s *Server) Close() {
	s.Attack(Attack{})
	s.http.CloseClientConnections()
	s.http.Close()
}

// URL of the server.
func (s *Server) URL() string { return s.http.URL }

// Secret returns the data of a connection Secret for the server.
func (s *Server) Secret() map[string][]byte {
	return map[string][]byte{
		"endpoint": []byte(s.http.URL),
		"clusterCA": pem.EncodeToMemory(&pem.Block{
			Type: "CERTIFICATE", Bytes: s.http.Certificate().Raw,
		}),
		"token": []byte("hostile"),
	}
}

// Attack replaces the attack, and ends the current responses.
func (s *Server) Attack(a Attack) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.attack = a
	close(s.turned)
	s.turned = make(chan struct{})
}

// Fill sets the number of ConfigMaps of the honest server, and their size in bytes.
func (s *Server) Fill(count, size int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.count, s.size = count, size
}

// Requests returns the number of requests so far.
func (s *Server) Requests() int64 { return s.requests.Load() }

// Sent returns the number of bytes that clients have received so far, without headers.
func (s *Server) Sent() int64 { return s.sent.Load() }

func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	s.requests.Add(1)
	s.mu.Lock()
	attack, turned, count, size := s.attack, s.turned, s.count, s.size
	s.mu.Unlock()
	a := &Answer{w: w, Request: r, turned: turned, sent: &s.sent, count: count, size: size}
	hostile, honest := attack.of(r)
	if hostile != nil {
		hostile(a)
		return
	}
	honest(a)
}

// Answer is one response of the server.
type Answer struct {
	w       http.ResponseWriter
	Request *http.Request

	turned      chan struct{}
	sent        *atomic.Int64
	count, size int
}

// Write sends a part of the response. It returns false if the client has gone.
func (a *Answer) Write(text string) bool {
	select {
	case <-a.turned:
		return false
	case <-a.Request.Context().Done():
		return false
	default:
	}
	n, err := io.WriteString(a.w, text)
	a.sent.Add(int64(n))
	return err == nil
}

// Flush sends the written bytes.
func (a *Answer) Flush() {
	if flusher, ok := a.w.(http.Flusher); ok {
		flusher.Flush()
	}
}

// Wait waits, and returns false if the client has gone.
func (a *Answer) Wait(d time.Duration) bool {
	select {
	case <-a.turned:
		return false
	case <-a.Request.Context().Done():
		return false
	case <-time.After(d):
		return true
	}
}

// Start begins a response with a status and a content type.
func (a *Answer) Start(status int) {
	a.w.Header().Set("Content-Type", "application/json")
	a.w.WriteHeader(status)
}

// JSON responds with a value.
func (a *Answer) JSON(status int, value any) {
	data, err := json.Marshal(value)
	if err != nil {
		panic(err) // all values are of this package
	}
	a.Start(status)
	a.Write(string(data))
}

type object = map[string]any

var resources = map[string][]any{
	"v1":      {resource("configmaps", "ConfigMap"), resource("secrets", "Secret")},
	"apps/v1": {resource("deployments", "Deployment")},
}

func resource(name, kind string) any {
	return object{"name": name, "singularName": strings.ToLower(kind), "namespaced": true, "kind": kind,
		"verbs": []string{"get", "list", "watch", "create", "patch", "delete"}}
}

func honestVersion(a *Answer) {
	a.JSON(http.StatusOK, object{"major": "1", "minor": "36", "gitVersion": "v1.36.3"})
}

func honestDiscovery(a *Answer) {
	path := strings.Trim(a.Request.URL.Path, "/")
	switch path {
	case "api":
		a.JSON(http.StatusOK, object{"kind": "APIVersions", "versions": []string{"v1"}})
		return
	case "apis":
		apps := object{"groupVersion": "apps/v1", "version": "v1"}
		a.JSON(http.StatusOK, object{"kind": "APIGroupList", "apiVersion": "v1", "groups": []any{
			object{"name": "apps", "versions": []any{apps}, "preferredVersion": apps},
		}})
		return
	}
	version := strings.TrimPrefix(strings.TrimPrefix(path, "apis/"), "api/")
	if known, ok := resources[version]; ok {
		a.JSON(http.StatusOK, object{"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": version, "resources": known})
		return
	}
	honestObject(a)
}

func honestObject(a *Answer) {
	a.JSON(http.StatusNotFound, object{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "NotFound",
		"message": "not found", "code": http.StatusNotFound})
}

// one returns an object of a size, as JSON.
func one(i, version, size int) string {
	return fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":"hostile","name":"object-%d","uid":"uid-%d","resourceVersion":"%d"},"data":{"value":"%s"}}`,
		i, i, version, strings.Repeat("x", size))
}

func (a *Answer) ofConfigMaps() bool { return strings.Contains(a.Request.URL.Path, "/configmaps") }

func honestList(a *Answer) {
	count := 0
	// All objects have a label with the hub's namespace.
	if a.ofConfigMaps() && !strings.Contains(a.Request.URL.Query().Get("labelSelector"), "!") {
		count = a.count
	}
	page(a, count, a.size, true)
}

// page responds with one page of a list, or with the whole list.
func page(a *Answer, count, size int, paged bool) {
	query := a.Request.URL.Query()
	from, _ := strconv.Atoi(query.Get("continue"))
	to := count
	if limit, _ := strconv.Atoi(query.Get("limit")); paged && limit > 0 {
		to = min(count, from+limit)
	}
	token := ""
	if to < count {
		token = strconv.Itoa(to)
	}
	a.Start(http.StatusOK)
	a.Write(fmt.Sprintf(`{"kind":"List","apiVersion":"v1","metadata":{"resourceVersion":"1","continue":%q},"items":[`, token))
	for i := from; i < to; i++ {
		comma := ","
		if i == from {
			comma = ""
		}
		if !a.Write(comma + one(i, 1, size)) {
			return
		}
	}
	a.Write("]}")
}

func honestWatch(a *Answer) {
	count := 0
	if a.ofConfigMaps() {
		count = a.count
	}
	if a.begin(count, a.size) {
		a.Flush()
		a.Wait(time.Hour)
	}
}

// begin starts a watch, with the initial events if the client requests them.
func (a *Answer) begin(count, size int) bool {
	a.Start(http.StatusOK)
	if a.Request.URL.Query().Get("sendInitialEvents") != "true" {
		a.Flush()
		return true
	}
	for i := range count {
		if !a.event("ADDED", one(i, 1, size)) {
			return false
		}
	}
	return a.event("BOOKMARK", `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"resourceVersion":"1","annotations":{"k8s.io/initial-events-end":"true"}}}`)
}

func (a *Answer) event(kind, object string) bool {
	return a.Write(`{"type":"` + kind + `","object":` + object + "}\n")
}
