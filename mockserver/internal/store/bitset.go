package store

import "math/bits"

// bitset is a set of row positions. A word holds 64 of them, so even a search
// through a million rows reads only 16 thousand words.
type bitset struct{ words []uint64 }

func (b *bitset) add(i int) {
	w := i / 64
	for len(b.words) <= w {
		b.words = append(b.words, 0)
	}
	b.words[w] |= 1 << (i % 64)
}

// remove removes a position that the set contains.
func (b *bitset) remove(i int) { b.words[i/64] &^= 1 << (i % 64) }

// word returns the positions 64*w to 64*w+63.
func (b *bitset) word(w int) uint64 {
	if w < len(b.words) {
		return b.words[w]
	}
	return 0
}

// highest and lowest return the position of a word's highest and lowest bit. The word
// must not be 0.
func highest(word uint64) int { return 63 - bits.LeadingZeros64(word) }
func lowest(word uint64) int  { return bits.TrailingZeros64(word) }
