package otelgateway

import "sync"

// maxCached bounds a cache. Operation names and statuses are few, unless a
// program puts ids into the names of its own calls.
const maxCached = 1000

// cache keeps the attribute sets and span options that similar calls share:
// building them costs more than recording with them.
type cache[K comparable, V any] struct {
	mu     sync.RWMutex
	values map[K]V
}

func (c *cache[K, V]) get(key K, build func(K) V) V {
	c.mu.RLock()
	value, ok := c.values[key]
	c.mu.RUnlock()
	if ok {
		return value
	}
	value = build(key)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.values == nil {
		c.values = make(map[K]V)
	}
	if len(c.values) < maxCached {
		c.values[key] = value
	}
	return value
}
