// Command words checks the names, comments and texts of Go files against
// words.yaml: names use the words of Kubernetes and of the API, and no metaphors.
//
//	go run ./test/words [-vague] [dir...]
package main

import (
	_ "embed"
	"flag"
	"fmt"
	"os"
)

//go:embed words.yaml
var config []byte

func main() {
	vague := flag.Bool("vague", false, "also print the number of vague words in the comments of each directory")
	flag.Parse()
	dirs := flag.Args()
	if len(dirs) == 0 {
		dirs = []string{"."}
	}
	problems, err := run(dirs, *vague)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	if problems > 0 {
		fmt.Fprintf(os.Stderr, "%d problems; test/words/words.yaml names the words to use\n", problems)
		os.Exit(1)
	}
}

func run(dirs []string, vague bool) (problems int, err error) {
	rules, err := parseRules(config)
	if err != nil {
		return 0, err
	}
	files, err := goFiles(dirs)
	if err != nil {
		return 0, err
	}
	comments := counts{}
	unused := rules.allowances()
	for _, file := range files {
		parsed, err := parse(file)
		if err != nil {
			return 0, err
		}
		for _, finding := range rules.check(parsed, unused) {
			fmt.Println(finding)
			problems++
		}
		comments.add(parsed, rules.Vague.Words)
	}
	if whole(dirs) {
		for _, allowance := range unused {
			fmt.Printf("words.yaml: %q in %q is not needed\n", allowance.Word, allowance.In)
			problems++
		}
	}
	for _, line := range comments.over(rules.Vague.PerThousand) {
		fmt.Println(line)
		problems++
	}
	if vague {
		fmt.Print(comments)
	}
	return problems, nil
}

// whole reports whether the directories are the whole tree, in which every
// allowance has to match.
func whole(dirs []string) bool { return len(dirs) == 1 && dirs[0] == "." }
