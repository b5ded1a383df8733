package docs

import (
	"regexp"
	"strings"
)

// block is a fenced block of a page, or a note to this test.
type block struct {
	language string // of the fence; "note" for a comment that speaks to this test
	line     int    // of its first line of text, from 1
	lines    []string
}

func (b block) text() string { return strings.Join(b.lines, "\n") + "\n" }

// note is a comment, which no reader sees, that asks this test for something.
var note = regexp.MustCompile(`^<!-- test: (.*) -->$`)

// blocks reads the fenced blocks and notes of a page, in order.
func blocks(page string) []block {
	var out []block
	var open *block
	for i, line := range strings.Split(page, "\n") {
		fence, fenced := strings.CutPrefix(line, "```")
		switch {
		case open != nil && fenced:
			out = append(out, *open)
			open = nil
		case open != nil:
			open.lines = append(open.lines, line)
		case fenced:
			open = &block{language: fence, line: i + 2}
		default:
			if m := note.FindStringSubmatch(line); m != nil {
				out = append(out, block{language: "note", line: i + 1, lines: m[1:]})
			}
		}
	}
	return out
}

// command is what a reader types, and what the page says it prints.
type command struct {
	line   int
	text   string
	output []string
}

const prompt = "$ "

// commands reads a console block.
func commands(b block) []command {
	var out []command
	for i := 0; i < len(b.lines); i++ {
		text, typed := strings.CutPrefix(b.lines[i], prompt)
		if !typed {
			if len(out) > 0 {
				out[len(out)-1].output = append(out[len(out)-1].output, b.lines[i])
			}
			continue
		}
		c := command{line: b.line + i, text: text}
		for unfinished(c.text) && i+1 < len(b.lines) {
			i++
			c.text += "\n" + b.lines[i]
		}
		out = append(out, c)
	}
	return out
}

// unfinished tells a command that goes on in the next line: after a backslash,
// inside quotes, or until the end of a here document.
func unfinished(command string) bool {
	if _, document, found := strings.Cut(command, "<<EOF"); found {
		return !strings.HasSuffix(document, "\nEOF")
	}
	return strings.HasSuffix(command, `\`) || strings.Count(command, "'")%2 == 1
}

// fails tells whether the page shows a command that fails.
func (c command) fails() bool {
	if len(c.output) == 0 {
		return false
	}
	last := c.output[len(c.output)-1]
	return strings.HasPrefix(last, "error: ") || strings.HasPrefix(last, "Error from server ")
}

// isReadOnly tells a command that changes nothing, which a reader would repeat until
// what it waits for is there.
func (c command) isReadOnly() bool {
	return regexp.MustCompile(`^kubectl .*\b(get|describe|events)\b`).MatchString(c.text)
}

const elided = "..."

// differs are the parts of an output that are never the same twice, and what
// they are compared as.
var differs = []struct {
	what *regexp.Regexp
	as   string
}{
	{regexp.MustCompile(`\b\d{1,3}(\.\d{1,3}){3}\b`), "ADDRESS"},
	{regexp.MustCompile(`:\d{4,5}\b`), ":PORT"},
	// A name made by Kubernetes, with the hash of a template, and of a Pod. It
	// may read like an age.
	{regexp.MustCompile(`-[bcdf-hj-np-tv-xz24-9]{6,10}(-[bcdf-hj-np-tv-xz24-9]{5})?\b`), "-HASH"},
	{regexp.MustCompile(`\b(\d+[dhms])+\b( \(x\d+ over (\d+[dhms])+\))?`), "AGE"},
	{regexp.MustCompile(`[ \t]+`), " "}, // columns are as wide as what is in them
}

func comparable(line string) string {
	for _, d := range differs {
		line = d.what.ReplaceAllString(line, d.as)
	}
	return strings.TrimRight(line, " ")
}

// shows tells whether an output is as the page shows it. A line "..." stands for
// any number of lines. A command that shows nothing may print anything.
func shows(want []string, got string) bool {
	if len(want) == 0 {
		return true
	}
	var pattern strings.Builder
	pattern.WriteString(`\A`)
	for _, line := range want {
		if line == elided {
			pattern.WriteString(`(.*\n)*`)
			continue
		}
		pattern.WriteString(regexp.QuoteMeta(comparable(line)) + `\n`)
	}
	pattern.WriteString(`\z`)
	var lines strings.Builder
	for line := range strings.Lines(strings.TrimRight(got, "\n") + "\n") {
		lines.WriteString(comparable(strings.TrimSuffix(line, "\n")) + "\n")
	}
	return regexp.MustCompile(pattern.String()).MatchString(lines.String())
}

// shown is what the page shows of the output, less the blank lines before the
// next command.
func (c command) shown() []string {
	out := c.output
	for len(out) > 0 && out[len(out)-1] == "" {
		out = out[:len(out)-1]
	}
	return out
}
