//go:build race

package main

// raceDetector multiplies what the process takes.
const raceDetector = true
