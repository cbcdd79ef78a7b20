//go:build !unix

package outside

import "os/exec"

// own does nothing: without process groups only the program itself is killed, and
// not its children.
func own(*exec.Cmd) {}

func adopt(*exec.Cmd) {}

func killGroup(cmd *exec.Cmd) { _ = cmd.Process.Kill() }
