package clusters

import (
	"fmt"
	"net/http"
	"time"

	authentication "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/kubernetes/scheme"
	authenticationv1 "k8s.io/client-go/kubernetes/typed/authentication/v1"
	"k8s.io/client-go/rest"
)

// probe asks the target for its version, notes whether it answered, and returns
// that.
func (c *Connection) probe() bool {
	info, err := c.version(c.config, c.http)
	if err == nil {
		err = c.introduce()
	}
	err = c.explain(err)
	next := judge(info.GitVersion, err).because(c.way, time.Now())
	if next.Up() {
		if err := c.prepare(); err != nil {
			next = judge("", err)
		}
	} else {
		c.http.CloseIdleConnections() // they may hang; the next call dials anew
	}
	if c.ctx.Err() != nil {
		return false
	}

	c.mu.Lock()
	before := c.state
	next.Since, next.Contact = before.Since, before.Contact
	if next.Reachable != before.Reachable {
		next.Since = time.Now()
		if before.Reachable == metav1.ConditionUnknown && !next.Up() && !c.wasDownSince.IsZero() {
			next.Since = c.wasDownSince
		}
		next.Contact = c.answered
		if next.Up() {
			next.Contact = next.Since
		}
	}
	if next.Up() {
		c.answered = time.Now()
	}
	if next.Version == "" {
		next.Version = before.Version
	}
	if !next.Up() {
		c.stopWatching()
	}
	c.state = next
	c.mu.Unlock()
	if next != before {
		c.listener.TargetChanged(c.target)
	}
	return next.Up()
}

func (c *Connection) version(config *rest.Config, httpClient *http.Client) (version.Info, error) {
	ctx, cancel := c.Context(c.ctx)
	defer cancel()
	config = rest.CopyConfig(config)
	config.GroupVersion = &schema.GroupVersion{}
	config.NegotiatedSerializer = scheme.Codecs.WithoutConversion()
	raw, err := rest.UnversionedRESTClientForConfigAndClient(config, httpClient)
	if err != nil {
		return version.Info{}, fmt.Errorf("preparing a probe: %w", err)
	}
	result := raw.Get().AbsPath("/version").Do(ctx)
	if err := result.Error(); err != nil { // in the target's words, unlike Raw's
		return version.Info{}, err
	}
	body, err := result.Raw()
	if err != nil {
		return version.Info{}, err
	}
	return parseVersion(body)
}

// introduce asks a target that answers for the first time who we are to it. A
// server that no longer knows passwords takes whoever sends one for a stranger,
// and would seem to work: it tells strangers its version.
func (c *Connection) introduce() error {
	if c.config.Username == "" || c.Client() != nil {
		return nil
	}
	ctx, cancel := c.Context(c.ctx)
	defer cancel()
	api, err := authenticationv1.NewForConfigAndClient(c.config, c.http)
	if err != nil {
		return fmt.Errorf("preparing a probe: %w", err)
	}
	_, err = api.SelfSubjectReviews().Create(ctx, &authentication.SelfSubjectReview{}, metav1.CreateOptions{})
	if apierrors.IsForbidden(err) { // everyone it knows may ask
		return apierrors.NewUnauthorized("the password was ignored")
	}
	if Lost(err) {
		return err
	}
	return nil // it cannot say
}

// explain finds out why a target that everybody may ask for its version does
// not tell us: if it tells us as ourselves, it does not let us act as another.
// An API server's refusal does not say which of the two it refuses.
func (c *Connection) explain(err error) error {
	if !apierrors.IsForbidden(err) || c.config.Impersonate.UserName == "" {
		return err
	}
	ourselves := rest.CopyConfig(c.config)
	ourselves.Impersonate = rest.ImpersonationConfig{}
	httpClient, failed := rest.HTTPClientFor(ourselves)
	if failed != nil {
		return err
	}
	httpClient.CheckRedirect = stay
	if _, failed := c.version(ourselves, httpClient); failed == nil {
		return notAllowedToActAs{err}
	}
	return err
}
