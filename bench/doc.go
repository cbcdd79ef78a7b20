// Package bench measures the client, the webhook receiver and the mock gateway
// beside the same work written by hand and beside other SDKs. Everything is in
// its tests; README.md has the commands and the figures.
package bench
