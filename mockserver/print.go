package mockserver

import "fmt"

// Everything that holds the key of an account or the secret of its webhooks
// prints as its name: package fmt would show what is in unexported fields, the
// methods of gateway.Secret notwithstanding.

func printName(f fmt.State, name string) { _, _ = f.Write([]byte("mockserver." + name)) }

// Format writes the type's name, whatever the verb.
func (*Server) Format(f fmt.State, _ rune) { printName(f, "Server") }

// Format writes the type's name, whatever the verb.
func (Account) Format(f fmt.State, _ rune) { printName(f, "Account") }

// Format writes the type's name, whatever the verb.
func (Transactions) Format(f fmt.State, _ rune) { printName(f, "Transactions") }

// Format writes the type's name, whatever the verb.
func (Transfers) Format(f fmt.State, _ rune) { printName(f, "Transfers") }

// Format writes the type's name, whatever the verb.
func (Subscriptions) Format(f fmt.State, _ rune) { printName(f, "Subscriptions") }

// Format writes the type's name, whatever the verb.
func (Checkout) Format(f fmt.State, _ rune) { printName(f, "Checkout") }

// Format writes the type's name, whatever the verb.
func (Legacy) Format(f fmt.State, _ rune) { printName(f, "Legacy") }

// Format writes the type's name, whatever the verb.
func (Webhooks) Format(f fmt.State, _ rune) { printName(f, "Webhooks") }

// Format writes the type's name, whatever the verb.
func (Faults) Format(f fmt.State, _ rune) { printName(f, "Faults") }

// Format writes the type's name, whatever the verb.
func (Requests) Format(f fmt.State, _ rune) { printName(f, "Requests") }
