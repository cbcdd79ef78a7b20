package merchant

import "time"

// The limits of how often a record that waits for something is compared.
const (
	soonest = time.Minute
	latest  = 6 * time.Hour
	giveUp  = 60 * day
)

const day = 24 * time.Hour
