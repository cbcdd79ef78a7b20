package mockserver

// TB is what [Run] needs of a *testing.T or *testing.B.
type TB interface {
	Helper()
	Cleanup(func())
	Failed() bool
	Logf(format string, args ...any)
	Fatalf(format string, args ...any)
}

// Run returns a gateway that ends with the test.
func Run(tb TB, opts ...Option) *Server {
	tb.Helper()
	s, err := New(opts...)
	if err != nil {
		tb.Fatalf("%v", err)
		return nil
	}
	tb.Cleanup(func() {
		if err := s.Close(); err != nil {
			tb.Logf("mockserver: closing: %v", err)
		}
	})
	return s
}
