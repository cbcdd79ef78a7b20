package gatewayprobe

// Known returns the ids of all experiments and reasons.
func Known() []string {
	var ids []string
	for id := range experiments() {
		ids = append(ids, id)
	}
	for id := range reasons() {
		ids = append(ids, id)
	}
	return ids
}
