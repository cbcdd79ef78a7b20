// Package webhooktest helps to test what receives webhooks: it makes signed
// deliveries of every kind and of every way in which a delivery can be wrong,
// and has two batteries of checks, [Run] for an HTTP handler and [RunStore] for
// a [webhook.Store].
package webhooktest

import "fmt"

// TB is the part of [testing.TB] that the batteries use.
type TB interface {
	Helper()
	Errorf(format string, args ...any)
}

// check runs one check of a battery and reports its failures under its name.
// A check that can't go on stops by itself.
func check(t TB, name string, do func(c *checker)) {
	t.Helper()
	c := &checker{t: t, name: name}
	defer func() {
		if p := recover(); p != nil && p != any(c) {
			panic(p)
		}
	}()
	do(c)
}

type checker struct {
	t    TB
	name string
}

// errorf reports a failure; the check goes on.
func (c *checker) errorf(format string, args ...any) {
	c.t.Helper()
	c.t.Errorf("%s: %s", c.name, fmt.Sprintf(format, args...))
}

// must stops the check on an error.
func (c *checker) must(err error) {
	if err != nil {
		c.t.Helper()
		c.errorf("%v", err)
		panic(c)
	}
}

// that reports what is wrong unless ok.
func (c *checker) that(ok bool, format string, args ...any) {
	if !ok {
		c.t.Helper()
		c.errorf(format, args...)
	}
}

// need is that, and stops the check.
func (c *checker) need(ok bool, format string, args ...any) {
	if !ok {
		c.t.Helper()
		c.errorf(format, args...)
		panic(c)
	}
}
