//go:build race

package main

// raceDetector multiplies the memory of the process.
const raceDetector = true
