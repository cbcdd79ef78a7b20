package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"strings"
)

// completion is the command of the same name.
func completion(_ context.Context, p environment, args []string) int {
	write := map[string]func(io.Writer){"bash": completeBash, "zsh": completeZsh, "fish": completeFish}
	if len(args) != 1 || write[args[0]] == nil {
		log{}.note(p.errs, noteError, "completion needs the name of a shell: bash, zsh or fish")
		return exitUsage
	}
	write[args[0]](p.out)
	return 0
}

// completions are the words that may follow the command.
func (c command) completions() []string {
	list := c.words
	set := (&flags{from: map[string]string{}}).set()
	switch {
	case c.client != nil:
		set, _, _ = c.flags()
	case c.name == "exam":
		set = (&examFlags{}).set()
	case c.name != "serve":
		return list
	}
	set.VisitAll(func(f *flag.Flag) { list = append(list, "-"+f.Name) })
	return list
}

func completeBash(out io.Writer) {
	names, cases := command{name: "serve"}.completions(), strings.Builder{}
	for _, c := range commands() {
		names = append(names, c.name)
		fmt.Fprintf(&cases, "    %s) words='%s' ;;\n", c.name, strings.Join(c.completions(), " "))
	}
	_, _ = fmt.Fprintf(out, "_mockgateway() {\n  local words='%s'\n  [ \"$COMP_CWORD\" -le 1 ] || case ${COMP_WORDS[1]} in\n%s  esac\n"+
		"  COMPREPLY=($(compgen -W \"$words\" -- \"${COMP_WORDS[COMP_CWORD]}\"))\n}\ncomplete -o default -F _mockgateway mockgateway\n",
		strings.Join(names, " "), cases.String())
}

// completeZsh uses the script of bash, which zsh can run.
func completeZsh(out io.Writer) {
	_, _ = io.WriteString(out, "autoload -Uz compinit bashcompinit && compinit && bashcompinit\n")
	completeBash(out)
}

func completeFish(out io.Writer) {
	for _, c := range commands() {
		_, _ = fmt.Fprintf(out, "complete -c mockgateway -n __fish_use_subcommand -a %s -d \"%s\"\n", c.name, plainText(c.about))
		_, _ = fmt.Fprintf(out, "complete -c mockgateway -n '__fish_seen_subcommand_from %s' -a '%s'\n", c.name, strings.Join(c.completions(), " "))
	}
}
