package credentials

import (
	"strings"
	"testing"

	"github.com/portico-io/portico/test/badsecrets"
)

// TestCorpus validates each Secret with two different values. The errors must be equal:
// an error that depends on a value reveals the value.
func TestCorpus(t *testing.T) {
	certificate, _ := pair(t)
	corpus, err := badsecrets.Corpus(badsecrets.Server{URL: "https://127.0.0.1:6443", CA: []byte(certificate)})
	if err != nil {
		t.Fatal(err)
	}
	if len(corpus) < 60 {
		t.Errorf("%d bad Secrets are too few", len(corpus))
	}
	for _, tc := range corpus {
		t.Run(tc.Name, func(t *testing.T) {
			var messages []string
			for _, canary := range []string{"nightingale", "kingfisher-kingfisher"} {
				_, errs := Rules{AllowLocal: true}.ReadSecret(tc.Data(canary))
				if tc.Reaches {
					if errs != nil {
						t.Errorf("refused although only the target can tell: %v", errs)
					}
					return
				}
				if errs == nil {
					t.Fatalf("accepted: %s", tc.Reason)
				}
				text := errs.ToAggregate().Error()
				if tc.Leaks(text, canary) {
					t.Errorf("%q has data of the Secret", text)
				}
				messages = append(messages, text)
			}
			if messages[0] != messages[1] {
				t.Errorf("%q and %q tell one Secret from another", messages[0], messages[1])
			}
			if !strings.Contains(messages[0], tc.Message) {
				t.Errorf("%q does not say %q: %s", messages[0], tc.Message, tc.Reason)
			}
		})
	}
}
