package deliver

// Latest lists up to n deliveries of an account that match, newest first, and
// reports whether there are more. "" means all accounts. match gets deliveries
// without their bodies and must return quickly; nil matches all.
func (s *Sender) Latest(account string, n int, match func(*Delivery) bool) (list []Delivery, more bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := len(s.log) - 1; i >= 0; i-- {
		d := s.log[i]
		if account != "" && d.Account != account || match != nil && !match(&d.Delivery) {
			continue
		}
		if len(list) == n {
			return list, true
		}
		list = append(list, d.view())
	}
	return list, false
}

// Holding reports whether an account's deliveries are held.
func (s *Sender) Holding(account string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, holding := s.held[account]
	return holding
}

// States lists the states of a delivery.
func States() []State { return []State{Pending, Delivered, Failed, Held, Dropped, NoEndpoint} }
