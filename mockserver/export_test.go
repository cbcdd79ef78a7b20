package mockserver

import "time"

// WithBodyTimeout sets how long a request's body may take to arrive.
func WithBodyTimeout(d time.Duration) Option { return func(s *settings) { s.bodyTimeout = d } }
