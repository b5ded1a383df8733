package docs

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestCommands(t *testing.T) {
	page := strings.Join([]string{
		"# Title", "", "```console", "$ one", "out", "", "$ two \\", "    more", "$ three <<EOF", "$ not a command", "EOF",
		"$ four '", "  quoted'", "error: no", "```", "<!-- test: stop -->", "```sh", "five", "```",
	}, "\n")
	got := blocks(page)
	if diff := cmp.Diff([]string{"console", "note", "sh"}, []string{got[0].language, got[1].language, got[2].language}); diff != "" {
		t.Errorf("blocks: -want, +got:\n%s", diff)
	}
	want := []command{
		{line: 4, text: "one", output: []string{"out", ""}},
		{line: 7, text: "two \\\n    more"},
		{line: 9, text: "three <<EOF\n$ not a command\nEOF"},
		{line: 12, text: "four '\n  quoted'", output: []string{"error: no"}},
	}
	if diff := cmp.Diff(want, commands(got[0]), cmp.AllowUnexported(command{})); diff != "" {
		t.Errorf("commands: -want, +got:\n%s", diff)
	}
	if !want[3].fails() || want[0].fails() {
		t.Error("a command fails when the last line shown says so, and only then")
	}
}

func TestShows(t *testing.T) {
	cases := map[string]struct {
		reason string
		want   string
		got    string
		shows  bool
	}{
		"Nothing":       {reason: "A page may omit all of the output.", got: "anything\n", shows: true},
		"Same":          {reason: "The width of columns does not matter.", want: "NAME   READY\nweb   2/2", got: "NAME READY\nweb  2/2\n", shows: true},
		"OtherCount":    {reason: "Counts must be equal.", want: "web 2/2", got: "web 1/2\n"},
		"Age":           {reason: "Ages do not matter.", want: "web 9s", got: "web 1m5s\n", shows: true},
		"EventAge":      {reason: "The age of an event may have a count.", want: "Normal 9s it", got: "Normal 3s (x12 over 3s) it\n", shows: true},
		"Address":       {reason: "Addresses do not matter.", want: "10.96.243.53 80:31375/TCP", got: "10.96.1.2 80:30001/TCP\n", shows: true},
		"NoAddress":     {reason: "An address must exist.", want: "203.0.113.195", got: "<pending>\n"},
		"Names":         {reason: "Hashes in names do not matter.", want: "wordpress-865455559d-zbssl", got: "wordpress-7766d598f5-24xvb\n", shows: true},
		"OtherNames":    {reason: "The name before the hash must be equal.", want: "wordpress-865455559d-zbssl", got: "web-7766d598f5-24xvb\n"},
		"Word":          {reason: "A word is not a hash.", want: "wordpress-deployment", got: "wordpress-service\n"},
		"Elided":        {reason: "An ellipsis matches any number of lines.", want: "...\nlast", got: "a\nb\nlast\n", shows: true},
		"ElidedNone":    {reason: "An ellipsis matches no line.", want: "...\nlast", got: "last\n", shows: true},
		"ElidedMissing": {reason: "The line after an ellipsis must exist.", want: "...\nlast", got: "a\nb\n"},
		"More":          {reason: "An additional line needs an ellipsis.", want: "a", got: "a\nb\n"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var want []string
			if tc.want != "" {
				want = strings.Split(tc.want, "\n")
			}
			if got := shows(want, tc.got); got != tc.shows {
				t.Errorf("\n%s\nshows(%q, %q) = %t", tc.reason, tc.want, tc.got, got)
			}
		})
	}
}
