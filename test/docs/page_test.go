package docs

import (
	"regexp"
	"strings"
)

// block is a fenced block of a page, or a note for this test.
type block struct {
	language string // the language of the fence; "note" for a comment with a note
	line     int    // the number of its first line of text, from 1
	lines    []string
}

func (b block) text() string { return strings.Join(b.lines, "\n") + "\n" }

// note matches a hidden comment with an instruction for this test.
var note = regexp.MustCompile(`^<!-- test: (.*) -->$`)

// blocks returns the fenced blocks and notes of a page, in order.
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

// command is a command in a page, with its output in the page.
type command struct {
	line   int
	text   string
	output []string
}

const prompt = "$ "

// commands parses a console block.
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

// unfinished tells whether a command continues in the next line: after a backslash,
// inside quotes, or until the end of a here document.
func unfinished(command string) bool {
	if _, document, found := strings.Cut(command, "<<EOF"); found {
		return !strings.HasSuffix(document, "\nEOF")
	}
	return strings.HasSuffix(command, `\`) || strings.Count(command, "'")%2 == 1
}

// fails tells whether the command fails in the page.
func (c command) fails() bool {
	if len(c.output) == 0 {
		return false
	}
	last := c.output[len(c.output)-1]
	return strings.HasPrefix(last, "error: ") || strings.HasPrefix(last, "Error from server ")
}

// isReadOnly tells whether a command changes nothing. A reader would repeat such a
// command until its output is as in the page.
func (c command) isReadOnly() bool {
	return regexp.MustCompile(`^kubectl .*\b(get|describe|events)\b`).MatchString(c.text)
}

const elided = "..."

// differs are the parts of an output that change with each run, with their
// replacements.
var differs = []struct {
	what *regexp.Regexp
	as   string
}{
	{regexp.MustCompile(`\b\d{1,3}(\.\d{1,3}){3}\b`), "ADDRESS"},
	{regexp.MustCompile(`:\d{4,5}\b`), ":PORT"},
	// The name of a ReplicaSet or a Pod, with the hash of a template. It may look like
	// an age.
	{regexp.MustCompile(`-[bcdf-hj-np-tv-xz24-9]{6,10}(-[bcdf-hj-np-tv-xz24-9]{5})?\b`), "-HASH"},
	{regexp.MustCompile(`\b(\d+[dhms])+\b( \(x\d+ over (\d+[dhms])+\))?`), "AGE"},
	{regexp.MustCompile(`[ \t]+`), " "}, // the width of a column depends on its values
}

func comparable(line string) string {
	for _, d := range differs {
		line = d.what.ReplaceAllString(line, d.as)
	}
	return strings.TrimRight(line, " ")
}

// shows tells whether an output is as in the page. A line "..." stands for any number
// of lines. A command without output in the page may have any output.
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

// shown returns the output in the page, without the blank lines before the next
// command.
func (c command) shown() []string {
	out := c.output
	for len(out) > 0 && out[len(out)-1] == "" {
		out = out[:len(out)-1]
	}
	return out
}
