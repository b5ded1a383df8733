package e2e

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/google/go-cmp/cmp"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// The log of the manager shows one Deployment from admission to Ready.
// UPDATE_GOLDEN=true writes testdata/log.golden.
var _ = Describe("The log", Serial, func() {
	It("follows a Deployment from admission to Ready", func(ctx context.Context) {
		namespace := newNamespace(dev)
		Expect(portico.RestartWith(ctx, "--v=4", "--log-format=json")).To(Succeed())
		DeferCleanup(func(ctx context.Context) { Expect(portico.Restart(ctx)).To(Succeed()) })
		info, err := os.Stat(portico.LogFile())
		Expect(err).NotTo(HaveOccurred())

		apply(namespace, web("name: web\n  labels", "name: logged\n  labels"))
		rolledOut(namespace, "logged")

		golden := filepath.Join("testdata", "log.golden")
		if os.Getenv("UPDATE_GOLDEN") != "" {
			Eventually(func() []string { return readLog(info.Size(), namespace).milestones() }).Should(HaveLen(len(milestones)))
			Expect(os.WriteFile(golden, []byte(readLog(info.Size(), namespace).render("")), 0o600)).To(Succeed())
		}
		want, err := os.ReadFile(golden)
		Expect(err).NotTo(HaveOccurred())
		Eventually(func() string { // the last statuses are written a moment later
			return cmp.Diff(string(want), readLog(info.Size(), namespace).render(string(want)))
		}).Should(BeEmpty(), "the log that follows a Deployment (-want +got)")
		readLog(info.Size(), namespace).expectIdentified()
	})
})

// entry is one line of the log: a constant message, and keys with values.
type entry map[string]any

func (e entry) text(key string) string {
	switch value := e[key].(type) {
	case string:
		return value
	case map[string]any: // klog.KObj
		name, _ := value["name"].(string)
		return name
	case []any:
		var out []string
		for _, v := range value {
			out = append(out, fmt.Sprint(v))
		}
		return strings.Join(out, ",")
	}
	return ""
}

func (e entry) level() int {
	level, _ := e["v"].(float64)
	return int(level)
}

// writer returns the part of Portico that wrote a line.
func (e entry) writer() string {
	if component := e.text("component"); component != "" {
		return e.text("logger") + " for " + component
	}
	if path := e.text("path"); path != "" {
		return "webhook " + path
	}
	if controller := e.text("controller"); controller != "" {
		return controller
	}
	return e.text("logger")
}

// journal has the lines of the log about one namespace.
type journal []entry

// readLog reads the lines about a namespace, from an offset of the log.
func readLog(offset int64, namespace string) journal {
	GinkgoHelper()
	file, err := os.Open(portico.LogFile())
	Expect(err).NotTo(HaveOccurred())
	defer file.Close()
	_, err = file.Seek(offset, 0)
	Expect(err).NotTo(HaveOccurred())
	about := regexp.MustCompile(`\b` + namespace + `\b`)
	var out journal
	scanner := bufio.NewScanner(file)
	scanner.Buffer(nil, 1<<20)
	for scanner.Scan() {
		var line entry
		if about.Match(scanner.Bytes()) && json.Unmarshal(scanner.Bytes(), &line) == nil {
			out = append(out, line)
		}
	}
	Expect(scanner.Err()).NotTo(HaveOccurred())
	return out
}

// expectIdentified expects that every line of a reconcile names the reconcile and its
// object.
func (j journal) expectIdentified() {
	GinkgoHelper()
	for _, e := range j {
		if e.text("controller") != "" && slices.Contains(chapters, e.writer()) {
			Expect(e).To(HaveKey("reconcileID"), "%v", e)
			Expect(e).To(Or(HaveKey("object"), HaveKey("resource"), HaveKey("application"), HaveKey("conflict")), "%v", e)
		}
	}
}

// chapters are the parts of Portico that write the log, in the order in which they act
// on a Deployment. The golden file has a section for each.
var chapters = []string{
	"webhook /mutate/hold", "policy for admission", "webhook /validate/native", "webhook /mutate/pin",
	"intake-deployments", "scheduler", "application", "propagation", "status-deployments",
}

// milestones always follow in this order: the decision of admission, the first write of
// each part, and the status from the target. Other lines may be between them.
var milestones = []struct{ writer, line, conditions string }{
	{"policy for admission", "V(2) Policy decided policy=data-residency", ""},
	{"intake-deployments", "V(1) Created object kind=KubernetesApplication ", ""},
	{"intake-deployments", "V(1) Created object kind=KubernetesApplicationResource ", ""},
	{"scheduler", "V(2) Chose target", ""},
	{"scheduler", "V(1) Patched object kind=KubernetesApplication ", ""},
	{"application", "V(1) Patched object kind=KubernetesApplicationResource ", ""},
	{"propagation", "V(1) Applied object to target kind=Deployment ", ""},
	{"propagation", "V(1) Wrote status kind=KubernetesApplicationResource ", "Ready=True"},
	{"status-deployments", "V(1) Wrote status kind=Deployment ", ""},
}

// stepPrefix begins the line of a step.
const stepPrefix = "V(4) Ran step "

// milestones returns the lines of the milestones, each after the previous one. It stops
// at the first missing milestone.
func (j journal) milestones() []string {
	var out []string
	next := 0
	for _, e := range j {
		if next == len(milestones) {
			break
		}
		m := milestones[next]
		if e.writer() == m.writer && strings.HasPrefix(e.line()+" ", m.line) && strings.Contains(e.text("conditions"), m.conditions) {
			line := m.writer + ": " + e.line()
			if m.conditions != "" {
				line += " conditions=" + m.conditions
			}
			out = append(out, line)
			next++
		}
	}
	return out
}

// render formats the milestones in order of time, and then a section for each part of
// Portico with its distinct lines. Times, identities, and the number of reconciles
// differ between runs, and are left out. Decisions and writes that are not in the
// golden file are left out too, unless the file is empty, because a slow machine waits
// and retries more often.
func (j journal) render(golden string) string {
	known := strings.Split(golden, "\n")
	seen := map[string]bool{}
	byChapter := map[string][]string{}
	for _, e := range j {
		writer, line := e.writer(), e.line()
		if golden != "" && !strings.HasPrefix(line, stepPrefix) && !slices.Contains(known, line) {
			continue
		}
		if line != "" && !seen[writer+line] {
			seen[writer+line] = true
			byChapter[writer] = append(byChapter[writer], line)
		}
	}
	var out strings.Builder
	out.WriteString("# In order\n" + strings.Join(j.milestones(), "\n") + "\n")
	for _, chapter := range chapters {
		out.WriteString("\n# " + chapter + "\n")
		for _, line := range ordered(byChapter[chapter]) {
			out.WriteString(line + "\n")
		}
	}
	return out.String()
}

// ordered keeps the order of steps, and sorts writes and decisions before them, because
// the order of two writes depends on the watches of the hub and of the target.
func ordered(lines []string) []string {
	slices.SortStableFunc(lines, func(a, b string) int {
		if strings.HasPrefix(a, "V(4)") && strings.HasPrefix(b, "V(4)") {
			return 0
		}
		return strings.Compare(a, b)
	})
	return lines
}

var (
	hash          = regexp.MustCompile(`-[0-9a-f]{8,10}\b`)
	namespaceName = regexp.MustCompile(`\bspec-[0-9]+\b`)
)

// line formats the stable part of an entry; empty for races that are no failures.
func (e entry) line() string {
	if e.text("conflict") != "" {
		return ""
	}
	out := fmt.Sprintf("V(%d) %s", e.level(), e.text("msg"))
	for _, key := range []string{"step", "policy", "result", "kind", "object", "reason"} {
		if key == "kind" && (e.text("step") != "" || e.text("policy") != "") || key == "object" && (e.text("step") != "" || e.text("policy") != "") {
			continue // the object is always the Deployment
		}
		if value := e.text(key); value != "" {
			value = namespaceName.ReplaceAllString(hash.ReplaceAllString(value, "-HASH"), "NAMESPACE")
			out += " " + key + "=" + value
		}
	}
	return out
}
