//go:build race

package mockserver_test

// raceDetector changes what a call allocates.
const raceDetector = true
