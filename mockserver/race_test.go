//go:build race

package mockserver_test

// raceDetector changes how much a call allocates.
const raceDetector = true
