package credentials

import (
	"strings"
	"testing"

	"github.com/portico-io/portico/test/badsecrets"
)

// TestCorpus refuses each Secret twice, with another canary in it, and wants
// the same words: an error that depends on a value tells of it.
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
			var said []string
			for _, canary := range []string{"nightingale", "kingfisher-kingfisher"} {
				_, errs := Rules{AllowLocal: true}.Read(tc.Data(canary))
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
					t.Errorf("%q tells what the Secret holds", text)
				}
				said = append(said, text)
			}
			if said[0] != said[1] {
				t.Errorf("%q and %q tell one Secret from another", said[0], said[1])
			}
			if !strings.Contains(said[0], tc.Says) {
				t.Errorf("%q does not say %q: %s", said[0], tc.Says, tc.Reason)
			}
		})
	}
}
