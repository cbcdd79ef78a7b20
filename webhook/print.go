package webhook

import "fmt"

// Format writes the type's name, whatever the verb: the receiver's fields hold
// the signing keys, and package fmt shows unexported fields as they are.
func (*Receiver) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte("webhook.Receiver")) }

// Format writes the type's name, whatever the verb.
func (*Reconciler) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte("webhook.Reconciler")) }
