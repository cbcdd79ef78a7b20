package gateway

// WithJitter replaces the random part of the waits, so that tests know them.
func WithJitter(jitter func() float64) Option {
	return func(s *settings) error {
		s.jitter = jitter
		return nil
	}
}
