// Package bench compares the client, the webhook receiver and the mock gateway
// with the same work written by hand and with other SDKs. README.md has the
// commands and the results.
package bench
