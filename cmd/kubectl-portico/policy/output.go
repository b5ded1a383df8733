package policy

import (
	"encoding/json"
	"encoding/xml"
	"fmt"
	"strings"

	"github.com/portico-io/portico/policies/engine"
)

// suited is a result that can be written as a JUnit report.
type suited interface{ suites() []suite }

// write writes a result in the format of -o.
func (c *command) write(o output, found suited, text func()) error {
	switch o {
	case asJSON:
		return c.writeJSON(found)
	case asJUnit:
		return c.writeJUnit(found.suites())
	default:
		text()
		return nil
	}
}

func (c *command) writeJSON(value any) error {
	encoder := json.NewEncoder(c.host.Out)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	return encoder.Encode(value)
}

// suite and its parts are the elements of a JUnit report.
type suite struct {
	XMLName  xml.Name `xml:"testsuite"`
	Name     string   `xml:"name,attr"`
	Tests    int      `xml:"tests,attr"`
	Failures int      `xml:"failures,attr"`
	Time     string   `xml:"time,attr"`
	Cases    []test   `xml:"testcase"`

	seconds float64
}

type test struct {
	Class   string       `xml:"classname,attr"`
	Name    string       `xml:"name,attr"`
	File    string       `xml:"file,attr,omitempty"`
	Time    string       `xml:"time,attr"`
	Failure *testFailure `xml:"failure,omitempty"`
	Output  string       `xml:"system-out,omitempty"`
}

type testFailure struct {
	Message string `xml:"message,attr"`
	Text    string `xml:",chardata"`
}

func (c *command) writeJUnit(suites []suite) error {
	document := struct {
		XMLName  xml.Name `xml:"testsuites"`
		Tests    int      `xml:"tests,attr"`
		Failures int      `xml:"failures,attr"`
		Suites   []suite
	}{Suites: suites}
	for _, s := range suites {
		document.Tests += s.Tests
		document.Failures += s.Failures
	}
	out, err := xml.MarshalIndent(document, "", "  ")
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(c.host.Out, "%s%s\n", xml.Header, out)
	return err
}

func (s *suite) add(t test, seconds float64) {
	s.Tests++
	if t.Failure != nil {
		s.Failures++
	}
	s.seconds += seconds
	t.Time, s.Time = inSeconds(seconds), inSeconds(s.seconds)
	s.Cases = append(s.Cases, t)
}

func inSeconds(seconds float64) string { return fmt.Sprintf("%.6f", seconds) }

// suites are the JUnit suites: one for each policy, with its tests, and a test
// that it works.
func (r results) suites() []suite {
	var out []suite
	for _, p := range r.Policies {
		s := suite{Name: p.Name}
		works := test{Class: p.Name, Name: "compiles", File: p.File, Output: lines(p.warnings)}
		if broken := p.broken(); len(broken) > 0 {
			works.Failure = &testFailure{Message: broken[0].Message, Text: lines(broken)}
		}
		s.add(works, 0)
		for _, t := range p.Tests {
			one := test{Class: t.Package, Name: t.Name, File: t.At, Output: t.Output}
			if !t.Passed {
				one.Failure = &testFailure{Message: t.Failure, Text: t.At + ": " + t.Failure}
			}
			s.add(one, t.Seconds)
		}
		out = append(out, s)
	}
	return out
}

func lines(problems []engine.Problem) string {
	out := make([]string, 0, len(problems))
	for _, p := range problems {
		out = append(out, p.String())
	}
	return strings.Join(out, "\n")
}
